#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/device/buffer.h"
#include "core/dtype.h"
#include "zero/exchange/comm_queue.h"
#include "zero/exchange/param_memory.h"
#include "zero/offload/offload.h"
#include "zero/partition/shard_layout.h"

namespace zerofleet {

/// Memory in which new parameters of some blocks are written, one block after another.
struct ParamWindow {
  std::span<std::byte> bytes;
  std::int64_t first_block = 0;  // of the layout
};

/// Parameters of one part in compute dtype: one flat array of all blocks on every rank. Owners write their blocks window
/// by window, and groups of buckets are gathered in place, on the communication thread while the next ones are written.
class ParamGather {
 public:
  /// Buckets of up to so many bytes are gathered together: small ones don't pay a start and a latency each, and large ones
  /// still travel while the next are written.
  static constexpr std::size_t kGatherBytes = std::size_t{32} << 20;

  /// All referenced objects must outlive this one. On every rank at once.
  ParamGather(std::unique_ptr<ParamMemory> memory, const ShardLayout& layout, CommQueue& queue, StatePlacement& placement,
              DType param_dtype, std::size_t gather_bytes = kGatherBytes);

  /// The flat array; padding stays zero.
  std::span<std::byte> flat() { return {params_.data(), params_.num_bytes()}; }
  std::span<const std::byte> flat() const { return {params_.data(), params_.num_bytes()}; }
  std::size_t num_bytes() const { return params_.num_bytes(); }
  DType dtype() const { return dtype_; }
  /// A parameter in the flat array.
  const std::byte* data(std::size_t param) const { return params_.data() + offset_of(layout_.param_blocks(param).begin); }

  /// The same to write owned blocks of before gather_all().
  std::byte* data_to_write(std::size_t param) {
    memory_->begin_writes();
    return params_.data() + offset_of(layout_.param_blocks(param).begin);
  }
  bool is_shared() const { return memory_->is_shared(); }

  /// Posts the gathering of all parameters, when the owned blocks are in the flat array.
  void gather_all();

  /// Calls write(buckets, window) for all owned blocks, some buckets at a time, and posts the gathering of each group that
  /// has been written. All parameters are in place once the queue is drained.
  template <class Write>
  void write(Write&& write_window) {
    for (const Range& group : groups_) {
      for (std::int64_t bucket = group.begin; bucket < group.end; bucket += pass_size_) {
        const Range buckets{bucket, bucket + pass_size_}, blocks = owned_blocks(buckets);
        const std::size_t begin = offset_of(blocks.begin), end = offset_of(blocks.end);
        write_window(buckets, ParamWindow{placement_.open_window(flat().subspan(begin, end - begin)), blocks.begin});
        placement_.close_window();
      }
      gather(group);
    }
  }

 private:
  std::size_t offset_of(std::int64_t block) const {
    return static_cast<std::size_t>(block * kBlockNumel) * size_of(dtype_);
  }
  Range owned_blocks(const Range& buckets) const;
  std::vector<Range> groups_within(std::size_t num_bytes) const;
  /// (ranks) bytes of a bucket that each rank owns.
  std::vector<Range> pieces_of(std::int64_t bucket) const;
  void gather(const Range& buckets);

  std::unique_ptr<ParamMemory> memory_;
  const ShardLayout& layout_;
  CommQueue& queue_;
  StatePlacement& placement_;
  DType dtype_;
  Buffer params_;
  std::vector<Range> groups_;    // of buckets that are gathered together; all ranks have the same
  std::int64_t pass_size_ = 1;  // buckets that are written together
};

}  // namespace zerofleet
