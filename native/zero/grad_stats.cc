#include "zero/grad_stats.h"

#include <algorithm>

#include "kernels/block_stats.h"

namespace zerofleet {
namespace {

// Everything in a message is a double; flags (32 bits) and target counts (below 2^53) are exact in it.
constexpr std::int64_t kFlagsPlace = 0, kFirstRecordPlace = 1, kRecordSize = 2;
constexpr std::int64_t kDoubleBytes = sizeof(double);

}  // namespace

GradStats::GradStats(const ShardLayout& layout, int rank, std::int64_t num_leaves)
    : layout_(layout), rank_(rank), num_leaves_(num_leaves) {
  std::int64_t end = 0;
  for (int r = 0; r < layout.world_size(); ++r) {
    const std::int64_t begin = end;
    end += kFirstRecordPlace + leaves_of(r) * kRecordSize + layout.shard_num_blocks(r);
    pieces_.push_back({begin, end});
  }
  messages_.resize(static_cast<std::size_t>(end));
}

std::int64_t GradStats::leaves_of(int rank) const {
  return (num_leaves_ - rank + layout_.world_size() - 1) / layout_.world_size();
}

std::int64_t GradStats::record_place(std::int64_t leaf) const {
  const auto owner = static_cast<std::size_t>(leaf % layout_.world_size());
  return pieces_[owner].begin + kFirstRecordPlace + leaf / layout_.world_size() * kRecordSize;
}

void GradStats::measure(const Context& context, std::span<const float> grad_shard) {
  const std::int64_t count = layout_.shard_num_blocks(rank_);
  const std::int64_t begin = pieces_[static_cast<std::size_t>(rank_)].end - count;
  block_sum_squares(context, grad_shard, kBlockNumel,
                    std::span(messages_).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)));
}

GlobalStats GradStats::exchange(Communicator& communicator, std::span<const LeafRecord> leaves, std::uint32_t flags) {
  const auto at = [&](std::int64_t place) -> double& { return messages_[static_cast<std::size_t>(place)]; };
  at(pieces_[static_cast<std::size_t>(rank_)].begin + kFlagsPlace) = flags;
  for (std::size_t round = 0; round < leaves.size(); ++round) {
    const std::int64_t place = record_place(static_cast<std::int64_t>(round) * layout_.world_size() + rank_);
    at(place) = leaves[round].loss_sum;
    at(place + 1) = static_cast<double>(leaves[round].num_targets);
  }
  std::vector<Range> bytes;
  for (const Range& piece : pieces_) {
    bytes.push_back({piece.begin * kDoubleBytes, piece.end * kDoubleBytes});
  }
  communicator.all_gather(std::as_writable_bytes(std::span(messages_)), bytes);

  GlobalStats stats;
  for (const Range& piece : pieces_) stats.flags |= static_cast<std::uint32_t>(at(piece.begin + kFlagsPlace));
  for (std::int64_t leaf = 0; leaf < num_leaves_; ++leaf) {
    stats.loss_sum += at(record_place(leaf));
    stats.num_targets += static_cast<std::int64_t>(at(record_place(leaf) + 1));
  }
  // A shard holds its blocks in ascending order, so going through the buckets from the front of the flat array, and in
  // each through its owners, meets all blocks in the order of their ids.
  std::vector<std::int64_t> next;
  for (int r = 0; r < layout_.world_size(); ++r) {
    next.push_back(pieces_[static_cast<std::size_t>(r)].end - layout_.shard_num_blocks(r));
  }
  for (std::int64_t bucket = layout_.num_buckets() - 1; bucket >= 0; --bucket) {
    for (int r = 0; r < layout_.world_size(); ++r) {
      for (std::int64_t i = layout_.owned_blocks(bucket, r).size(); i > 0; --i) {
        stats.sum_squares += at(next[static_cast<std::size_t>(r)]++);
      }
    }
  }
  return stats;
}

double clip_coefficient(double norm, double max_norm) {
  return max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
}

}  // namespace zerofleet
