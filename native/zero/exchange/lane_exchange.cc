#include "zero/exchange/lane_exchange.h"

#include <vector>

namespace zerofleet {

LaneExchange::LaneExchange(const Context& context, const ShardLayout& layout, Communicator& communicator,
                           DType reduce_dtype)
    : layout_(layout), communicator_(communicator), width_(size_of(reduce_dtype)) {
  if (layout.world_size() == 1) return;
  const auto piece_bytes =
      static_cast<std::size_t>(max_owned_blocks(layout, communicator.rank()) * kBlockNumel) * width_;
  recv_ = Buffer(context.device, piece_bytes * static_cast<std::size_t>(layout.world_size()));
}

GradTerms LaneExchange::exchange(const LaneRound& round, std::int64_t bucket, std::span<std::byte> contents) {
  if (layout_.world_size() == 1) return {contents, 1, round.first_lane};  // all pieces are here already
  const Range blocks = layout_.bucket_blocks(bucket);
  const std::int64_t own = bytes_in_bucket(layout_.owned_blocks(bucket, communicator_.rank()), blocks, width_).size();
  std::vector<Message> sends, recvs;
  for (int peer = 0; peer < layout_.world_size() && !contents.empty(); ++peer) {
    sends.push_back({peer, bytes_in_bucket(layout_.owned_blocks(bucket, peer), blocks, width_)});
  }
  // Rank r sends the r-th lane of the round, so the senders are the first ranks and their pieces lie in lane order.
  for (int peer = 0; peer < round.num_senders; ++peer) recvs.push_back({peer, {peer * own, (peer + 1) * own}});
  const std::span<std::byte> received(recv_.data(), static_cast<std::size_t>(round.num_senders * own));
  communicator_.all_to_all(contents, sends, received, recvs);
  return {received, round.num_senders, round.first_lane};
}

}  // namespace zerofleet
