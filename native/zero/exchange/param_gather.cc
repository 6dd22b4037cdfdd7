#include "zero/exchange/param_gather.h"

namespace zerofleet {

ParamGather::ParamGather(const Context& context, const ShardLayout& layout, Communicator& communicator,
                         CommQueue& queue, StatePlacement& placement, DType param_dtype)
    : layout_(layout),
      communicator_(communicator),
      queue_(queue),
      placement_(placement),
      dtype_(param_dtype),
      params_(context.device, static_cast<std::size_t>(layout.padded_numel()) * size_of(param_dtype)) {
  // Among peers, a bucket travels while the next is being written; alone and in place, one pass over all is fastest.
  const bool at_once = layout.world_size() == 1 && placement.in_place();
  const std::int64_t stride = at_once ? layout.num_buckets() : 1;
  for (std::int64_t bucket = 0; bucket < layout.num_buckets(); bucket += stride) {
    passes_.push_back({bucket, bucket + stride});
  }
}

Range ParamGather::owned_blocks(const Range& buckets) const {
  // Bucket 0 is the end of the flat array.
  const int rank = communicator_.rank();
  return {layout_.owned_blocks(buckets.end - 1, rank).begin, layout_.owned_blocks(buckets.begin, rank).end};
}

void ParamGather::gather(const Range& buckets) {
  if (layout_.world_size() == 1 && placement_.in_place()) return;
  for (std::int64_t bucket = buckets.begin; bucket < buckets.end; ++bucket) {
    queue_.post([this, bucket](bool failed) {
      if (failed) return;
      placement_.wait_for_windows();
      std::vector<Range> pieces;
      for (int rank = 0; rank < layout_.world_size(); ++rank) {
        const Range owned = layout_.owned_blocks(bucket, rank);
        pieces.push_back(
            {static_cast<std::int64_t>(offset_of(owned.begin)), static_cast<std::int64_t>(offset_of(owned.end))});
      }
      communicator_.all_gather(flat(), pieces);
    });
  }
}

}  // namespace zerofleet
