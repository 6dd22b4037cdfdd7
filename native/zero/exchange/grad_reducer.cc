#include "zero/exchange/grad_reducer.h"

#include <utility>

#include "kernels/flat/fold.h"

namespace zerofleet {
namespace {

// Beside those of the states, which the optimizer walks together with the gradients.
constexpr int kGradSkew = 9;

/// Gives a sent buffer back to the pool, however the sending ends.
class SendingBuffer {
 public:
  SendingBuffer(const GradRoute& route, Buffer buffer)
      : pool_(route.staging), sender_(route.queue.context()), buffer_(std::move(buffer)) {
    pool_.announce_sending();
  }
  ~SendingBuffer() { pool_.give_back(std::move(buffer_), sender_); }
  SendingBuffer(const SendingBuffer&) = delete;
  SendingBuffer& operator=(const SendingBuffer&) = delete;

  std::span<std::byte> contents(std::size_t num_bytes) { return {buffer_.data(), num_bytes}; }

 private:
  StagingPool& pool_;
  Context sender_;
  Buffer buffer_;
};

}  // namespace

GradReducer::GradReducer(const ShardLayout& layout, int rank, const LeafSchedule& schedule, Communicator& communicator,
                         const GradRoute& route, const DTypes& dtypes)
    : layout_(layout),
      rank_(rank),
      route_(route),
      schedule_(schedule),
      exchange_(make_grad_exchange(route.queue, layout, schedule, communicator, dtypes.reduce)),
      dtypes_(dtypes) {
  for (std::int64_t bucket = 0; bucket < layout.num_buckets(); ++bucket) {
    shard_offsets_.push_back(layout.shard_offset(bucket, rank));
  }
  const auto numel = static_cast<std::size_t>(layout.shard_num_blocks(rank) * kBlockNumel);
  grad_shard_ = route.placement.allocate(numel * size_of(dtypes.sum), kGradSkew);
}

void GradReducer::begin_pass(const LeafSchedule& schedule, bool starts_sum) {
  schedule_ = schedule;
  starts_sum_ = starts_sum;
}

LaneRound GradReducer::lanes_of(std::int64_t round) const {
  LaneRound lanes = schedule_.round(round);
  lanes.starts_sum = starts_sum_;
  return lanes;
}

void GradReducer::reduce_bucket(std::int64_t round, std::int64_t bucket, Buffer contents) {
  const auto num_bytes =
      static_cast<std::size_t>(layout_.bucket_blocks(bucket).size() * kBlockNumel) * size_of(dtypes_.reduce);
  auto sending = std::make_shared<SendingBuffer>(route_, std::move(contents));
  route_.queue.post([this, lanes = lanes_of(round), bucket, num_bytes, sending = std::move(sending)](bool failed) {
    if (!failed) exchange_and_fold(lanes, bucket, sending->contents(num_bytes));
  });
}

void GradReducer::reduce_nothing(std::int64_t round, std::int64_t bucket) {
  route_.queue.post([this, lanes = lanes_of(round), bucket](bool failed) {
    if (!failed) exchange_and_fold(lanes, bucket, {});
  });
}

void GradReducer::exchange_and_fold(const LaneRound& round, std::int64_t bucket, std::span<std::byte> contents) {
  const GradTerms terms = exchange_->exchange(round, bucket, contents);
  if (terms.count == 0) return;
  if (!route_.placement.in_place()) route_.queue.wait_for_exchanges();  // the host adds up
  const std::size_t width = size_of(dtypes_.sum);
  const auto offset = static_cast<std::size_t>(shard_offsets_[static_cast<std::size_t>(bucket)]) * width;
  const auto numel = static_cast<std::size_t>(layout_.owned_blocks(bucket, rank_).size() * kBlockNumel);
  route_.placement.fold({.pieces = terms.bytes,
                         .piece_dtype = dtypes_.reduce,
                         .num_pieces = terms.count,
                         .sum = {grad_shard_.data() + offset, numel * width},
                         .sum_dtype = dtypes_.sum,
                         .restart = round.starts_sum && terms.first == 0});
}

}  // namespace zerofleet
