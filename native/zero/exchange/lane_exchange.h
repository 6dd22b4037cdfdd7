#pragma once

#include "core/device/buffer.h"
#include "zero/exchange/grad_exchange.h"

namespace zerofleet {

/// All-to-all: every rank sends each owner its piece of the rank's lane, and the pieces arrive in lane order; each is a term. Moves
/// the bytes of a ring reduce-scatter.
class LaneExchange final : public GradExchange {
 public:
  LaneExchange(const Context& context, const ShardLayout& layout, const LeafSchedule& schedule,
               Communicator& communicator, DType reduce_dtype);

  GradTerms exchange(std::int64_t round, std::int64_t bucket, std::span<std::byte> contents) override;
  std::size_t staging_bytes() const override { return recv_.num_bytes(); }

 private:
  const ShardLayout& layout_;
  LeafSchedule schedule_;
  Communicator& communicator_;
  std::size_t width_;  // bytes per element on the way
  Buffer recv_;        // pieces of one bucket, one per sending rank
};

}  // namespace zerofleet
