#include "zero/exchange/group_exchange.h"

#include <algorithm>

#include "kernels/flat/cast.h"
#include "kernels/flat/fold.h"

namespace zerofleet {
namespace {

Range shifted(const Range& range, std::int64_t by) { return {range.begin + by, range.end + by}; }

}  // namespace

GroupExchange::GroupExchange(CommQueue& queue, const ShardLayout& layout, Communicator& communicator,
                             DType reduce_dtype, int group_size)
    : queue_(queue),
      layout_(layout),
      communicator_(communicator),
      dtype_(reduce_dtype),
      group_size_(group_size),
      num_groups_(layout.world_size() / group_size_),
      group_(communicator.rank() / group_size_),
      member_(communicator.rank() % group_size_) {
  std::int64_t blocks = 0;
  for (int group = 0; group < num_groups_; ++group) blocks += max_owned_blocks(layout, rank_at(group, member_));
  const auto chunk = static_cast<std::size_t>(blocks * kBlockNumel);
  lanes_ = Buffer(queue.context().device, chunk * size_of(reduce_dtype) * static_cast<std::size_t>(group_size_));
  sums_ = Buffer(queue.context().device, chunk * sizeof(float));
  sent_ = Buffer(queue.context().device, chunk * size_of(reduce_dtype));
  if (num_groups_ == 1) return;
  const auto owned = static_cast<std::size_t>(max_owned_blocks(layout, communicator.rank()) * kBlockNumel);
  terms_ = Buffer(queue.context().device, owned * size_of(reduce_dtype) * static_cast<std::size_t>(num_groups_));
}

std::vector<Range> GroupExchange::chunk_of(std::int64_t bucket, int member) const {
  std::vector<Range> runs;
  std::int64_t begin = 0;
  for (int group = 0; group < num_groups_; ++group) {
    const std::int64_t blocks = layout_.owned_blocks(bucket, rank_at(group, member)).size();
    const std::int64_t end = begin + blocks * kBlockNumel * static_cast<std::int64_t>(size_of(dtype_));
    runs.push_back({begin, end});
    begin = end;
  }
  return runs;
}

GradTerms GroupExchange::exchange(const LaneRound& round, std::int64_t bucket, std::span<std::byte> contents) {
  const int num_lanes = std::clamp(round.num_senders - group_ * group_size_, 0, group_size_);
  const int num_groups = (round.num_senders + group_size_ - 1) / group_size_;
  GradTerms terms = swap_sums(bucket, num_groups, sum_in_group(bucket, num_lanes, contents));
  terms.first = round.first_lane / group_size_;
  return terms;
}

std::span<std::byte> GroupExchange::sum_in_group(std::int64_t bucket, int num_lanes, std::span<std::byte> contents) {
  const Range blocks = layout_.bucket_blocks(bucket);
  const std::vector<Range> chunk = chunk_of(bucket, member_);
  const std::int64_t chunk_bytes = chunk.back().end;
  std::vector<Message> sends, recvs;
  for (int member = 0; member < group_size_ && !contents.empty(); ++member) {
    for (int group = 0; group < num_groups_; ++group) {
      const Range owned = layout_.owned_blocks(bucket, rank_at(group, member));
      sends.push_back({rank_at(group_, member), bytes_in_bucket(owned, blocks, size_of(dtype_))});
    }
  }
  for (int lane = 0; lane < num_lanes; ++lane) {
    for (const Range& run : chunk) recvs.push_back({rank_at(group_, lane), shifted(run, lane * chunk_bytes)});
  }
  const std::span<std::byte> lanes(lanes_.data(), static_cast<std::size_t>(num_lanes * chunk_bytes));
  communicator_.all_to_all(contents, sends, lanes, recvs);
  if (num_lanes == 0) return {};
  const std::span<std::byte> sent(sent_.data(), static_cast<std::size_t>(chunk_bytes));
  const std::span<float> sums = sums_.as<float>().first(sent.size() / size_of(dtype_));
  fold_pieces(queue_.context(), {.pieces = lanes,
                                 .piece_dtype = dtype_,
                                 .num_pieces = num_lanes,
                                 .sum = std::as_writable_bytes(sums),
                                 .sum_dtype = DType::kF32,
                                 .restart = true});
  cast_from_f32(queue_.context(), sums, dtype_, sent);
  return sent;
}

GradTerms GroupExchange::swap_sums(std::int64_t bucket, int num_groups, std::span<std::byte> sums) {
  if (num_groups_ == 1) return {.bytes = sums, .count = 1};
  const std::vector<Range> chunk = chunk_of(bucket, member_);
  const std::int64_t owned = chunk[static_cast<std::size_t>(group_)].size();
  std::vector<Message> sends, recvs;
  for (int group = 0; group < num_groups_ && group_ < num_groups; ++group) {
    sends.push_back({rank_at(group, member_), chunk[static_cast<std::size_t>(group)]});
  }
  for (int group = 0; group < num_groups; ++group) {
    recvs.push_back({rank_at(group, member_), {group * owned, (group + 1) * owned}});
  }
  const std::span<std::byte> terms(terms_.data(), static_cast<std::size_t>(num_groups * owned));
  queue_.finish_for_exchange();  // the sums
  communicator_.all_to_all(sums, sends, terms, recvs);
  return {.bytes = terms, .count = num_groups};
}

std::size_t GroupExchange::staging_bytes() const {
  return lanes_.num_bytes() + sums_.num_bytes() + sent_.num_bytes() + terms_.num_bytes();
}

}  // namespace zerofleet
