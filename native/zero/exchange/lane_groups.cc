#include "zero/exchange/lane_groups.h"

#include <algorithm>
#include <utility>

#include "kernels/flat/cast.h"
#include "kernels/flat/fold.h"

namespace zerofleet {

LaneGroups::LaneGroups(const Context& context, const ShardLayout& layout, int rank, const LeafSchedule& schedule,
                       DType reduce_dtype, std::unique_ptr<GradExchange> lanes)
    : context_(context),
      layout_(layout),
      rank_(rank),
      group_size_(schedule.lane_group()),
      spans_rounds_(schedule.num_rounds() > 1),
      dtype_(reduce_dtype),
      lanes_(std::move(lanes)) {
  const std::int64_t in_bucket = max_owned_blocks(layout, rank);
  const std::int64_t kept = spans_rounds_ ? layout.shard_num_blocks(rank) : in_bucket;
  sums_ = Buffer(context.device, static_cast<std::size_t>(kept * kBlockNumel) * sizeof(float));
  // The pass may end in the middle of a group.
  const std::int64_t ends = 1 + (layout.world_size() - 1) / schedule.lane_group() + 1;
  const std::int64_t most = std::min<std::int64_t>(ends, layout.world_size());
  terms_ = Buffer(context.device, static_cast<std::size_t>(most * in_bucket * kBlockNumel) * size_of(reduce_dtype));
}

std::span<float> LaneGroups::sums_of(std::int64_t bucket) {
  const std::int64_t begin = spans_rounds_ ? layout_.shard_offset(bucket, rank_) : 0;
  const std::int64_t numel = layout_.owned_blocks(bucket, rank_).size() * kBlockNumel;
  return sums_.as<float>().subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(numel));
}

GradTerms LaneGroups::exchange(const LaneRound& round, std::int64_t bucket, std::span<std::byte> contents) {
  const GradTerms lanes = lanes_->exchange(round, bucket, contents);
  const std::span<float> sums = sums_of(bucket);
  const std::size_t piece_bytes = sums.size() * size_of(dtype_);
  const std::int64_t group = group_size_, end = lanes.first + lanes.count;
  GradTerms terms{.bytes = {}, .count = 0, .first = lanes.first / group};
  for (std::int64_t lane = lanes.first; lane < end;) {
    const std::int64_t group_end = std::min((lane / group + 1) * group, round.num_lanes);
    const std::int64_t run_end = std::min(group_end, end);
    fold_pieces(context_, {.pieces = lanes.bytes.subspan(static_cast<std::size_t>(lane - lanes.first) * piece_bytes,
                                                         static_cast<std::size_t>(run_end - lane) * piece_bytes),
                           .piece_dtype = dtype_,
                           .num_pieces = run_end - lane,
                           .sum = std::as_writable_bytes(sums),
                           .sum_dtype = DType::kF32,
                           .restart = lane % group == 0});
    if (run_end == group_end) {
      const auto offset = static_cast<std::size_t>(terms.count++) * piece_bytes;
      cast_from_f32(context_, sums, dtype_, {terms_.data() + offset, piece_bytes});
    }
    lane = run_end;
  }
  terms.bytes = {terms_.data(), static_cast<std::size_t>(terms.count) * piece_bytes};
  return terms;
}

std::size_t LaneGroups::staging_bytes() const {
  return lanes_->staging_bytes() + sums_.num_bytes() + terms_.num_bytes();
}

}  // namespace zerofleet
