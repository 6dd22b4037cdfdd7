#include "zero/exchange/param_norms.h"

#include <cmath>
#include <cstddef>

#include "zero/partition/block_order.h"

namespace zerofleet {

ParamNorms::ParamNorms(const ShardLayout& layout, int rank) : layout_(layout), rank_(rank) {
  std::int64_t end = 0;
  for (int r = 0; r < layout.world_size(); ++r) {
    const std::int64_t begin = end;
    end += 2 * layout.shard_num_blocks(r);
    pieces_.push_back({begin, end});
  }
  messages_.resize(static_cast<std::size_t>(end));
}

std::span<double> ParamNorms::own(std::int64_t kind) {
  const Range& piece = pieces_[static_cast<std::size_t>(rank_)];
  const std::int64_t count = piece.size() / 2;
  return std::span(messages_).subspan(static_cast<std::size_t>(piece.begin + kind * count),
                                      static_cast<std::size_t>(count));
}

std::vector<ParamNorm> ParamNorms::exchange(Communicator& communicator) {
  std::vector<Range> bytes;
  for (const Range& piece : pieces_) bytes.push_back(scaled(piece, sizeof(double)));
  communicator.all_gather(std::as_writable_bytes(std::span(messages_)), bytes);

  std::vector<ParamNorm> sums(layout_.num_params());
  for_each_block(layout_, [&](std::size_t param, int shard, std::int64_t index) {
    const Range& piece = pieces_[static_cast<std::size_t>(shard)];
    sums[param].weight += messages_[static_cast<std::size_t>(piece.begin + index)];
    sums[param].update += messages_[static_cast<std::size_t>(piece.begin + piece.size() / 2 + index)];
  });
  for (ParamNorm& sum : sums) sum = {std::sqrt(sum.weight), std::sqrt(sum.update)};
  return sums;
}

}  // namespace zerofleet
