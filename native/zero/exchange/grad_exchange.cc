#include "zero/exchange/grad_exchange.h"

#include <algorithm>
#include <vector>

namespace zerofleet {

Range bytes_in_bucket(const Range& blocks, const Range& bucket, std::size_t width) {
  const auto block_bytes = kBlockNumel * static_cast<std::int64_t>(width);
  return {(blocks.begin - bucket.begin) * block_bytes, (blocks.end - bucket.begin) * block_bytes};
}

GradExchange::GradExchange(const Context& context, const ShardLayout& layout, Communicator& communicator,
                             DType reduce_dtype)
    : layout_(layout), communicator_(communicator), width_(size_of(reduce_dtype)) {
  if (layout.world_size() == 1) return;
  std::int64_t max_owned = 0;
  for (std::int64_t bucket = 0; bucket < layout.num_buckets(); ++bucket) {
    max_owned = std::max(max_owned, layout.owned_blocks(bucket, communicator.rank()).size());
  }
  const auto piece_bytes = static_cast<std::size_t>(max_owned * kBlockNumel) * width_;
  recv_ = Buffer(context.device, piece_bytes * static_cast<std::size_t>(layout.world_size()));
}

GradPieces GradExchange::exchange(std::int64_t bucket, int num_senders, std::span<std::byte> contents) {
  const Range blocks = layout_.bucket_blocks(bucket);
  if (layout_.world_size() == 1) return {contents, 1};  // all pieces are here already
  const Range own = bytes_in_bucket(layout_.owned_blocks(bucket, communicator_.rank()), blocks, width_);
  std::vector<Range> send, recv;
  for (int peer = 0; peer < layout_.world_size(); ++peer) {
    send.push_back(contents.empty() ? Range{} : bytes_in_bucket(layout_.owned_blocks(bucket, peer), blocks, width_));
    // Rank r sends the r-th lane of the round, so the senders are the first ranks and their pieces lie in lane order.
    recv.push_back({std::min(peer, num_senders) * own.size(), std::min(peer + 1, num_senders) * own.size()});
  }
  const std::span<std::byte> received(recv_.data(), static_cast<std::size_t>(num_senders * own.size()));
  communicator_.all_to_all(contents, send, received, recv);
  return {received, num_senders};
}

}  // namespace zerofleet
