#include "zero/step/grad_stats.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "kernels/flat/block_stats.h"
#include "zero/partition/block_order.h"

namespace zerofleet {
namespace {

// Everything in a message is a double; flags (32 bits) and target counts (below 2^53) are exact in it. A message has
// the flags, then (loss sum, number of targets, auxiliary loss) per leaf, then the values of the blocks, part by part.
constexpr std::int64_t kRecordSize = 3;

std::vector<Range> in_bytes(std::span<const Range> ranges) {
  std::vector<Range> bytes;
  for (const Range& range : ranges) bytes.push_back(scaled(range, sizeof(double)));
  return bytes;
}

}  // namespace

GradStats::GradStats(NormKind norm, std::vector<StatsPart> parts, const LeavesOfRanks& leaves, int rank)
    : norm_(norm), parts_(std::move(parts)) {
  check(leaves, rank);
  std::size_t num_leaves = 0;
  for (const auto& of_rank : leaves) num_leaves += of_rank.size();
  record_offsets_.assign(num_leaves, -1);
  for (const StatsPart& part : parts_) blocks_.push_back({std::vector<std::int64_t>(part.ranks.size()), -1});
  std::int64_t end = 0;
  for (std::size_t r = 0; r < leaves.size(); ++r) {
    const std::int64_t begin = end++;
    for (const std::int64_t leaf : leaves[r]) {
      require(leaf >= 0 && leaf < static_cast<std::int64_t>(num_leaves) && record_offset(leaf) < 0, "invalid_argument",
              "the leaves of all ranks must be 0, 1, 2 … and each must have one rank");
      record_offset(leaf) = end;
      end += kRecordSize;
    }
    end = lay_out_blocks(static_cast<int>(r), end, rank);
    pieces_.push_back({begin, end});
  }
  messages_.resize(static_cast<std::size_t>(end));
  own_ = pieces_[static_cast<std::size_t>(rank)];
  own_num_leaves_ = static_cast<std::int64_t>(leaves[static_cast<std::size_t>(rank)].size());
}

void GradStats::check(const LeavesOfRanks& leaves, int rank) const {
  const auto world_size = static_cast<int>(leaves.size());
  require(rank >= 0 && rank < world_size && !parts_.empty(), "invalid_argument", "statistics need a rank and a part");
  for (const StatsPart& part : parts_) {
    require(part.ranks.size() == static_cast<std::size_t>(part.layout->world_size()) &&
                std::ranges::all_of(part.ranks, [&](int r) { return r >= 0 && r < world_size; }),
            "invalid_argument", "each shard of a part is with one rank of the world");
    require(part.spread.size() == part.layout->num_params(), "invalid_argument",
            "each parameter of a part is spread over model-parallel ranks, or not");
  }
}

std::int64_t GradStats::lay_out_blocks(int rank, std::int64_t begin, int own_rank) {
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    for (int shard = 0; shard < parts_[part].layout->world_size(); ++shard) {
      if (parts_[part].ranks[static_cast<std::size_t>(shard)] != rank) continue;
      blocks_[part].begin[static_cast<std::size_t>(shard)] = begin;
      begin += parts_[part].layout->shard_num_blocks(shard);
      if (rank == own_rank) blocks_[part].own_shard = shard;
    }
  }
  return begin;
}

void GradStats::measure(const Context& context, std::size_t part, std::span<const std::byte> grad_shard, DType dtype) {
  const int shard = blocks_[part].own_shard;
  require(shard >= 0, "invalid_argument", "this rank holds no shard of the part that it measures");
  const auto count = static_cast<std::size_t>(parts_[part].layout->shard_num_blocks(shard));
  const auto begin = static_cast<std::size_t>(blocks_[part].begin[static_cast<std::size_t>(shard)]);
  const auto values = std::span(messages_).subspan(begin, count);
  max_abs_.resize(count);
  block_stats(context, grad_shard, dtype, kBlockNumel, values, max_abs_);
  for (std::size_t i = 0; i < count; ++i) values[i] = block_value(norm_, values[i], static_cast<double>(max_abs_[i]));
}

GlobalStats GradStats::exchange(Communicator& world, Communicator* model_parallel, std::span<const LeafRecord> leaves,
                                std::uint32_t flags) {
  require(static_cast<std::int64_t>(leaves.size()) == own_num_leaves_, "invalid_argument",
          "a rank reports each of its leaves once");
  std::int64_t offset = own_.begin;
  at(offset++) = flags;
  for (const LeafRecord& leaf : leaves) {
    at(offset++) = leaf.loss_sum;
    at(offset++) = static_cast<double>(leaf.num_targets);
    at(offset++) = leaf.aux_loss;
  }
  world.all_gather(std::as_writable_bytes(std::span(messages_)), in_bytes(pieces_));

  GlobalStats stats;
  NormSums sums = fold_messages(stats);
  if (model_parallel != nullptr) sums = fold_model_parallel(*model_parallel, sums, stats);
  stats.norm = total_norm(norm_, sums);
  return stats;
}

NormSums GradStats::fold_messages(GlobalStats& stats) {
  for (const Range& piece : pieces_) stats.flags |= static_cast<std::uint32_t>(at(piece.begin));
  for (const std::int64_t offset : record_offsets_) {
    stats.loss_sum += at(offset);
    stats.num_targets += static_cast<std::int64_t>(at(offset + 1));
    stats.aux_loss += at(offset + 2);
  }
  if (!record_offsets_.empty()) stats.aux_loss /= static_cast<double>(record_offsets_.size());
  NormSums sums;
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    for_each_block(*parts_[part].layout, [&](std::size_t param, int shard, std::int64_t block) {
      double& sum = parts_[part].spread[param] ? sums.spread : sums.same;
      sum = fold(norm_, sum, at(blocks_[part].begin[static_cast<std::size_t>(shard)] + block));
    });
  }
  return sums;
}

NormSums GradStats::fold_model_parallel(Communicator& ranks, const NormSums& sums, GlobalStats& stats) const {
  constexpr std::size_t size = 6;  // flags, loss sum, number of targets, auxiliary loss, the two sums
  const auto num_ranks = static_cast<std::size_t>(ranks.world_size());
  std::vector<double> messages(num_ranks * size);
  const auto own = std::span(messages).subspan(static_cast<std::size_t>(ranks.rank()) * size, size);
  own[0] = stats.flags;
  own[1] = stats.loss_sum;
  own[2] = static_cast<double>(stats.num_targets);
  own[3] = stats.aux_loss;
  own[4] = sums.spread;
  own[5] = sums.same;
  std::vector<Range> pieces;
  for (std::size_t r = 0; r < num_ranks; ++r) {
    pieces.push_back({static_cast<std::int64_t>(r * size), static_cast<std::int64_t>((r + 1) * size)});
  }
  ranks.all_gather(std::as_writable_bytes(std::span(messages)), in_bytes(pieces));

  std::vector<NormSums> all;
  for (std::size_t r = 0; r < num_ranks; ++r) {
    stats.flags |= static_cast<std::uint32_t>(messages[r * size]);
    all.push_back({messages[r * size + 4], messages[r * size + 5]});
  }
  stats.loss_sum = messages[1];
  stats.num_targets = static_cast<std::int64_t>(messages[2]);
  stats.aux_loss = messages[3];
  return over_model_parallel(norm_, all);
}

double clip_coefficient(double norm, double max_norm) {
  return max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
}

}  // namespace zerofleet
