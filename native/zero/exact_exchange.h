#pragma once

#include "core/buffer.h"
#include "zero/grad_exchange.h"

namespace zerofleet {

/// All-to-all: every rank sends each owner its piece, and pieces arrive in lane order. Moves the bytes of a ring
/// reduce-scatter, and the sum, which the owner makes, does not depend on the world size.
class ExactExchange final : public GradExchange {
 public:
  ExactExchange(const Context& context, const ShardLayout& layout, Communicator& communicator, DType reduce_dtype);

  GradPieces exchange(std::int64_t bucket, int num_senders, std::span<std::byte> contents) override;
  std::size_t staging_bytes() const override { return recv_.num_bytes(); }

 private:
  const ShardLayout& layout_;
  Communicator& communicator_;
  std::size_t width_;  // bytes per element on the way
  Buffer recv_;        // pieces of one bucket, one per sending rank
};

}  // namespace zerofleet
