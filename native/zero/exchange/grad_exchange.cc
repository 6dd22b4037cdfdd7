#include "zero/exchange/grad_exchange.h"

#include <algorithm>
#include <utility>

#include "zero/exchange/group_exchange.h"
#include "zero/exchange/lane_exchange.h"
#include "zero/exchange/lane_groups.h"

namespace zerofleet {

std::unique_ptr<GradExchange> make_grad_exchange(CommQueue& queue, const ShardLayout& layout,
                                                 const LeafSchedule& schedule, Communicator& communicator,
                                                 DType reduce_dtype) {
  const std::int64_t group = schedule.lane_group();
  if (group > 1 && layout.world_size() % group == 0) {
    return std::make_unique<GroupExchange>(queue, layout, communicator, reduce_dtype, static_cast<int>(group));
  }
  auto lanes = std::make_unique<LaneExchange>(queue.context(), layout, communicator, reduce_dtype);
  if (group == 1) return lanes;
  return std::make_unique<LaneGroups>(queue.context(), layout, communicator.rank(), schedule, reduce_dtype,
                                      std::move(lanes));
}

Range bytes_in_bucket(const Range& blocks, const Range& bucket, std::size_t width) {
  const auto block_bytes = kBlockNumel * static_cast<std::int64_t>(width);
  return {(blocks.begin - bucket.begin) * block_bytes, (blocks.end - bucket.begin) * block_bytes};
}

std::int64_t max_owned_blocks(const ShardLayout& layout, int rank) {
  std::int64_t blocks = 0;
  for (std::int64_t bucket = 0; bucket < layout.num_buckets(); ++bucket) {
    blocks = std::max(blocks, layout.owned_blocks(bucket, rank).size());
  }
  return blocks;
}

}  // namespace zerofleet
