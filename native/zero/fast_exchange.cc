#include "zero/fast_exchange.h"

#include <vector>

#include "core/transfer.h"
#include "kernels/fold.h"

namespace zerofleet {

FastExchange::FastExchange(const Context& context, const ShardLayout& layout, Communicator& communicator,
                           const LeafSchedule& schedule, DType reduce_dtype)
    : context_(context), layout_(layout), communicator_(communicator), dtype_(reduce_dtype) {
  if (communicator.rank() < schedule.num_senders(schedule.num_rounds() - 1)) return;
  zeros_ = Buffer(context.device, static_cast<std::size_t>(layout.max_bucket_blocks() * kBlockNumel) * size_of(dtype_));
}

GradPieces FastExchange::exchange(std::int64_t bucket, int /*num_senders*/, std::span<std::byte> contents) {
  const Range blocks = layout_.bucket_blocks(bucket);
  const std::size_t width = size_of(dtype_);
  if (contents.empty()) {
    contents = {zeros_.data(), static_cast<std::size_t>(blocks.size() * kBlockNumel) * width};
    fill_zero(context_, contents);  // the exchange before this one wrote to it
    synchronize(context_);
  }
  std::vector<Range> pieces;
  for (int rank = 0; rank < layout_.world_size(); ++rank) {
    pieces.push_back(bytes_in_bucket(layout_.owned_blocks(bucket, rank), blocks, width));
  }
  communicator_.reduce_scatter(contents, pieces, [this](std::span<std::byte> sum, std::span<const std::byte> addend) {
    fold_pieces(context_, {.pieces = addend, .piece_dtype = dtype_, .sum = sum, .sum_dtype = dtype_});
    synchronize(context_);
  });
  const Range own = pieces[static_cast<std::size_t>(communicator_.rank())];
  return {contents.subspan(static_cast<std::size_t>(own.begin), static_cast<std::size_t>(own.size())), 1};
}

}  // namespace zerofleet
