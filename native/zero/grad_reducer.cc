#include "zero/grad_reducer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "kernels/fold.h"

namespace zerofleet {
namespace {

// Beside those of the states, which the optimizer walks together with the gradients.
constexpr int kGradSkew = 9;

/// Blocks of a bucket as a range of bytes in the bucket's buffer.
Range bytes_in_bucket(const Range& blocks, const Range& bucket, std::size_t width) {
  const auto block_bytes = kBlockNumel * static_cast<std::int64_t>(width);
  return {(blocks.begin - bucket.begin) * block_bytes, (blocks.end - bucket.begin) * block_bytes};
}

/// Gives a sent buffer back to the pool, however the sending ends.
class SendingBuffer {
 public:
  SendingBuffer(StagingPool& pool, Buffer buffer) : pool_(pool), buffer_(std::move(buffer)) {
    pool_.announce_sending();
  }
  ~SendingBuffer() { pool_.give_back(std::move(buffer_)); }
  SendingBuffer(const SendingBuffer&) = delete;
  SendingBuffer& operator=(const SendingBuffer&) = delete;

  const Buffer& contents() const { return buffer_; }

 private:
  StagingPool& pool_;
  Buffer buffer_;
};

}  // namespace

GradReducer::GradReducer(const Context& context, const ShardLayout& layout, Communicator& communicator,
                         CommQueue& queue, StagingPool& pool, DType reduce_dtype, const LeafSchedule& schedule)
    : context_{context.device, &own_pool_, context.cpu_isa},
      layout_(layout),
      communicator_(communicator),
      queue_(queue),
      pool_(pool),
      width_(size_of(reduce_dtype)),
      reduce_dtype_(reduce_dtype),
      schedule_(schedule) {
  const int rank = communicator.rank();
  std::int64_t max_owned = 0;
  for (std::int64_t bucket = 0; bucket < layout.num_buckets(); ++bucket) {
    shard_offsets_.push_back(layout.shard_offset(bucket, rank));
    max_owned = std::max(max_owned, layout.owned_blocks(bucket, rank).size());
  }
  const auto shard_numel = static_cast<std::size_t>(layout.shard_num_blocks(rank) * kBlockNumel);
  grad_shard_ = Buffer(context.device, shard_numel * sizeof(float), kGradSkew);
  if (layout.world_size() == 1) return;
  const auto piece_bytes = static_cast<std::size_t>(max_owned * kBlockNumel) * width_;
  recv_ = Buffer(context.device, piece_bytes * static_cast<std::size_t>(layout.world_size()));
}

void GradReducer::reduce_bucket(std::int64_t round, std::int64_t bucket, Buffer contents) {
  auto sending = std::make_shared<SendingBuffer>(pool_, std::move(contents));
  queue_.post([this, round, bucket, sending = std::move(sending)](bool failed) {
    const Buffer& buffer = sending->contents();
    if (!failed) exchange_and_fold(round, bucket, {buffer.data(), buffer.num_bytes()});
  });
}

void GradReducer::reduce_nothing(std::int64_t round, std::int64_t bucket) {
  queue_.post([this, round, bucket](bool failed) {
    if (!failed) exchange_and_fold(round, bucket, {});
  });
}

void GradReducer::exchange_and_fold(std::int64_t round, std::int64_t bucket, std::span<const std::byte> contents) {
  const int num_senders = schedule_.num_senders(round);
  const auto pieces = exchange(bucket, num_senders, contents);
  const std::int64_t owned_numel = layout_.owned_blocks(bucket, communicator_.rank()).size() * kBlockNumel;
  const auto offset = static_cast<std::size_t>(shard_offsets_[static_cast<std::size_t>(bucket)]);
  const auto sum = grad_shard_.as<float>().subspan(offset, static_cast<std::size_t>(owned_numel));
  fold_pieces(context_, {.pieces = pieces,
                         .piece_dtype = reduce_dtype_,
                         .num_pieces = num_senders,
                         .sum = std::as_writable_bytes(sum),
                         .restart = round == 0});
}

std::span<const std::byte> GradReducer::exchange(std::int64_t bucket, int num_senders,
                                                 std::span<const std::byte> contents) {
  const Range blocks = layout_.bucket_blocks(bucket);
  const auto bucket_bytes = static_cast<std::size_t>(blocks.size() * kBlockNumel) * width_;
  if (layout_.world_size() == 1) return contents.first(bucket_bytes);  // all pieces are here already
  const Range own = bytes_in_bucket(layout_.owned_blocks(bucket, communicator_.rank()), blocks, width_);
  std::vector<Range> send, recv;
  for (int peer = 0; peer < layout_.world_size(); ++peer) {
    send.push_back(contents.empty() ? Range{} : bytes_in_bucket(layout_.owned_blocks(bucket, peer), blocks, width_));
    // Rank r sends the r-th lane of the round, so the senders are the first ranks and their pieces lie in lane order.
    recv.push_back({std::min(peer, num_senders) * own.size(), std::min(peer + 1, num_senders) * own.size()});
  }
  const std::span<std::byte> received(recv_.data(), static_cast<std::size_t>(num_senders * own.size()));
  communicator_.all_to_all(contents, send, received, recv);
  return received;
}

}  // namespace zerofleet
