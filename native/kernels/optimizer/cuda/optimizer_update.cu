// The optimizers: one pass over memory, each block of threads one tile of one segment.
#include "core/device/context.h"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/warp.cuh"
#include "kernels/optimizer/cuda/lamb_lane.h"
#include "kernels/optimizer/cuda/segment_batch.h"
#include "kernels/optimizer/lamb.h"
#include "kernels/optimizer/optimizer_update.h"

namespace zerofleet::cuda {
namespace {

using Segments = std::span<const OptimizerSegment>;

template <class Update>
__global__ void __launch_bounds__(kUpdateThreads)
    update_kernel(const __grid_constant__ SegmentBatch<typename Update::Scalars> batch) {
  update_tile<Update>(batch, blockIdx.x, static_cast<int>(threadIdx.x));
}

template <class Update>
void update_all(const Context& context, Segments segments, const OptimizerDTypes& dtypes,
                const UpdateGroups<Update>& groups) {
  using Scalars = typename Update::Scalars;
  static_assert(sizeof(SegmentBatch<Scalars>) <= 4000, "a kernel's arguments have room for 4 KiB");
  const Stream& stream = stream_of(context);
  for_each_batch<Scalars>(segments, dtypes, kUpdateTile, groups.scalars, [&](const SegmentBatch<Scalars>& batch) {
    launch("optimizer_update", stream, {num_blocks_for(batch.num_tiles(), 1), kUpdateThreads}, update_kernel<Update>,
           batch);
  });
}

__global__ void __launch_bounds__(kWarpThreads)
    lamb_prepare_kernel(const __grid_constant__ SegmentBatch<LambScalars> batch, std::int64_t num_blocks,
                        std::int64_t block_numel, LambLane* sums) {
  const std::int64_t block = warp_of_grid();
  if (block >= num_blocks) return;
  const LambLane part = lamb_lane(batch, block, block_numel, lane_of_warp());
  const double weights = folded_by_halves(part.weights), updates = folded_by_halves(part.updates);
  if (lane_of_warp() == 0) sums[block] = {weights, updates};
}

}  // namespace

void optimizer_update(const Context& context, Segments segments, const OptimizerDTypes& dtypes,
                      const OptimizerGroups& groups) {
  std::visit([&](const auto& update) { update_all(context, segments, dtypes, update); }, groups.variant);
}

void lamb_prepare(const Context& context, Segments segments, const OptimizerDTypes& dtypes,
                  std::span<const LambScalars> groups, const LambSums& sums) {
  const Stream& stream = stream_of(context);
  std::int64_t total_blocks = 0, first_block = 0;
  for (const OptimizerSegment& segment : segments) total_blocks += segment.numel / sums.block_numel;
  if (total_blocks == 0) return;
  Results<LambLane> results(context, static_cast<std::size_t>(total_blocks));
  for_each_batch<LambScalars>(segments, dtypes, sums.block_numel, groups, [&](const SegmentBatch<LambScalars>& batch) {
    const std::int64_t num_blocks = batch.num_tiles();
    launch("lamb_prepare", stream, {num_blocks_for(num_blocks, kWarpThreads / 32), kWarpThreads}, lamb_prepare_kernel,
           batch, num_blocks, sums.block_numel, results.data() + first_block);
    first_block += num_blocks;
  });
  // The results lie in the order of the segments.
  const auto fetched = results.fetch();
  std::size_t next = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const auto slot = static_cast<std::size_t>(sums.first_stats[i]);
    const auto num_blocks = static_cast<std::size_t>(segments[i].numel / sums.block_numel);
    for (std::size_t block = 0; block < num_blocks; ++block, ++next) {
      sums.weights[slot + block] = fetched[next].weights;
      sums.updates[slot + block] = fetched[next].updates;
    }
  }
}

}  // namespace zerofleet::cuda
