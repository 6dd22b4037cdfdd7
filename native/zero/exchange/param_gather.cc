#include "zero/exchange/param_gather.h"

#include <utility>

#include "zero/exchange/grad_exchange.h"

namespace zerofleet {

ParamGather::ParamGather(std::unique_ptr<ParamMemory> memory, const ShardLayout& layout, CommQueue& queue,
                         StatePlacement& placement, DType param_dtype, std::size_t gather_bytes)
    : memory_(std::move(memory)), layout_(layout), queue_(queue), placement_(placement), dtype_(param_dtype) {
  const std::size_t num_bytes = static_cast<std::size_t>(layout.padded_numel()) * size_of(param_dtype);
  params_ = std::move(memory_->allocate({&num_bytes, 1}).front());
  // Among peers, buckets travel while the next are written; alone and in place, one pass over all is fastest.
  const bool at_once = layout.world_size() == 1 && placement.in_place();
  if (at_once) pass_size_ = layout.num_buckets();
  groups_ = at_once ? std::vector<Range>{{0, pass_size_}} : groups_within(gather_bytes);
}

void ParamGather::gather_all() {
  if (layout_.world_size() == 1) return;
  for (const Range& group : groups_) gather(group);
  queue_.post([this](bool failed) {
    if (!failed) memory_->end_writes();
  });
}

std::vector<Range> ParamGather::groups_within(std::size_t num_bytes) const {
  std::vector<Range> groups;
  std::size_t sum = 0;
  for (std::int64_t bucket = 0; bucket < layout_.num_buckets(); ++bucket) {
    const std::size_t more = offset_of(layout_.bucket_blocks(bucket).size());
    if (groups.empty() || sum + more > num_bytes) {
      groups.push_back({bucket, bucket});
      sum = 0;
    }
    groups.back().end = bucket + 1;
    sum += more;
  }
  return groups;
}

Range ParamGather::owned_blocks(const Range& buckets) const {
  // Bucket 0 is the end of the flat array.
  const int rank = memory_->communicator().rank();
  return {layout_.owned_blocks(buckets.end - 1, rank).begin, layout_.owned_blocks(buckets.begin, rank).end};
}

std::vector<Range> ParamGather::pieces_of(std::int64_t bucket) const {
  std::vector<Range> pieces;
  for (int rank = 0; rank < layout_.world_size(); ++rank) {
    pieces.push_back(
        bytes_in_bucket(layout_.owned_blocks(bucket, rank), layout_.bucket_blocks(bucket), size_of(dtype_)));
  }
  return pieces;
}

void ParamGather::gather(const Range& buckets) {
  if (layout_.world_size() == 1 && placement_.in_place()) return;
  queue_.post([this, buckets](bool failed) {
    if (failed) return;
    placement_.wait_for_windows();
    std::vector<std::vector<Range>> pieces;  // (buckets) (ranks) in the bucket
    std::vector<Gather> gathers;
    pieces.reserve(static_cast<std::size_t>(buckets.size()));
    for (std::int64_t bucket = buckets.begin; bucket < buckets.end; ++bucket) {
      const Range blocks = layout_.bucket_blocks(bucket);
      const std::size_t begin = offset_of(blocks.begin), end = offset_of(blocks.end);
      gathers.push_back({flat().subspan(begin, end - begin), pieces.emplace_back(pieces_of(bucket))});
    }
    memory_->all_gathers(gathers);
  });
}

}  // namespace zerofleet
