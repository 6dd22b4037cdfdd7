#pragma once

#include "core/buffer.h"
#include "zero/grad_exchange.h"

namespace zerofleet {

/// A ring reduce-scatter: sums are made on the way, in the dtype on the wire. Without the memory for received pieces that
/// the exact exchange needs, but the bits of the result depend on the world size.
class FastExchange final : public GradExchange {
 public:
  FastExchange(const Context& context, const ShardLayout& layout, Communicator& communicator,
               const LeafSchedule& schedule, DType reduce_dtype);

  GradPieces exchange(std::int64_t bucket, int num_senders, std::span<std::byte> contents) override;
  std::size_t staging_bytes() const override { return zeros_.num_bytes(); }

 private:
  Context context_;
  const ShardLayout& layout_;
  Communicator& communicator_;
  DType dtype_;
  Buffer zeros_;  // what a rank gives that has nothing to give
};

}  // namespace zerofleet
