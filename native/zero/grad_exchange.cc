#include "zero/grad_exchange.h"

#include "zero/exact_exchange.h"
#include "zero/fast_exchange.h"

namespace zerofleet {

Range bytes_in_bucket(const Range& blocks, const Range& bucket, std::size_t width) {
  const auto block_bytes = kBlockNumel * static_cast<std::int64_t>(width);
  return {(blocks.begin - bucket.begin) * block_bytes, (blocks.end - bucket.begin) * block_bytes};
}

std::unique_ptr<GradExchange> make_grad_exchange(Numerics numerics, const Context& context, const ShardLayout& layout,
                                                 Communicator& communicator, const LeafSchedule& schedule,
                                                 DType reduce_dtype) {
  if (numerics == Numerics::kFast) {
    return std::make_unique<FastExchange>(context, layout, communicator, schedule, reduce_dtype);
  }
  return std::make_unique<ExactExchange>(context, layout, communicator, reduce_dtype);
}

}  // namespace zerofleet
