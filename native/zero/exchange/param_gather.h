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

/// Memory for the new parameters of consecutive blocks.
struct ParamWindow {
  std::span<std::byte> bytes;
  std::int64_t first_block = 0;  // of the layout
};

/// All parameters of one part in compute dtype, as one flat array on every rank. Owners write their blocks window by
/// window. Groups of buckets are gathered in place on the communication thread, while the next windows are written.
class ParamGather {
 public:
  /// Largest size of a group of buckets that are gathered together. Small buckets share a start and a latency, and
  /// large ones still travel while the next are written.
  static constexpr std::size_t kGatherBytes = std::size_t{32} << 20;

  /// All referenced objects must outlive this one. Must be called on every rank at once.
  ParamGather(std::unique_ptr<ParamMemory> memory, const ShardLayout& layout, CommQueue& queue,
              StatePlacement& placement, DType param_dtype, std::size_t gather_bytes = kGatherBytes);

  /// The flat array. Padding is always zero.
  std::span<std::byte> flat() { return {params_.data(), params_.num_bytes()}; }
  std::span<const std::byte> flat() const { return {params_.data(), params_.num_bytes()}; }
  std::size_t num_bytes() const { return params_.num_bytes(); }
  DType dtype() const { return dtype_; }
  /// Returns a parameter in the flat array.
  const std::byte* data(std::size_t param) const {
    return params_.data() + offset_of(layout_.param_blocks(param).begin);
  }

  /// Returns a parameter for writing its owned blocks, before gather_all().
  std::byte* data_to_write(std::size_t param) {
    memory_->begin_writes();
    return params_.data() + offset_of(layout_.param_blocks(param).begin);
  }
  bool is_shared() const { return memory_->is_shared(); }

  /// Posts the gathering of all parameters, once the owned blocks are in the flat array.
  void gather_all();

  /// Calls write_window(buckets, window) for all owned blocks, some buckets at a time, and posts the gathering of each
  /// group that was written. All parameters are in place once the queue is drained.
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
  /// Returns the bytes of a bucket that each rank owns, (ranks).
  std::vector<Range> pieces_of(std::int64_t bucket) const;
  void gather(const Range& buckets);

  std::unique_ptr<ParamMemory> memory_;
  const ShardLayout& layout_;
  CommQueue& queue_;
  StatePlacement& placement_;
  DType dtype_;
  Buffer params_;
  std::vector<Range> groups_;   // of buckets that are gathered together; equal on all ranks
  std::int64_t pass_size_ = 1;  // buckets that are written together
};

}  // namespace zerofleet
