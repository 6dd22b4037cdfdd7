#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "core/buffer.h"
#include "core/context.h"
#include "core/dtype.h"
#include "zero/comm_queue.h"
#include "zero/shard_layout.h"

namespace zerofleet {

/// The model's parameters in compute dtype: one flat array of all blocks on every rank. Owners write their blocks, then
/// each bucket is gathered in place, on the communication thread while the next one is being updated.
class ParamGather {
 public:
  /// All referenced objects must outlive this one.
  ParamGather(const Context& context, const ShardLayout& layout, Communicator& communicator, CommQueue& queue,
              DType param_dtype);

  /// The flat array; padding stays zero.
  std::span<std::byte> flat() { return {params_.data(), params_.num_bytes()}; }
  std::size_t num_bytes() const { return params_.num_bytes(); }
  /// One pointer per parameter into the flat array.
  std::span<const std::byte* const> pointers() const { return pointers_; }
  DType dtype() const { return dtype_; }

  /// Posts the gathering of one bucket whose owned blocks have been written. Done once the queue is drained.
  void gather(std::int64_t bucket);

 private:
  const ShardLayout& layout_;
  Communicator& communicator_;
  CommQueue& queue_;
  DType dtype_;
  Buffer params_;
  std::vector<const std::byte*> pointers_;  // (num_params)
};

}  // namespace zerofleet
