#pragma once

#include "core/device/buffer.h"
#include "zero/exchange/grad_exchange.h"

namespace zerofleet {

/// Exchange by all-to-all: every rank sends each owner its piece of the rank's lane. The pieces arrive in lane order,
/// and each one is a term. It moves as many bytes as a ring reduce-scatter.
class LaneExchange final : public GradExchange {
 public:
  LaneExchange(const Context& context, const ShardLayout& layout, Communicator& communicator, DType reduce_dtype);

  GradTerms exchange(const LaneRound& round, std::int64_t bucket, std::span<std::byte> contents) override;
  std::size_t staging_bytes() const override { return recv_.num_bytes(); }

 private:
  const ShardLayout& layout_;
  Communicator& communicator_;
  std::size_t width_;  // bytes per element in transit
  Buffer recv_;        // pieces of one bucket, one per sending rank
};

}  // namespace zerofleet
