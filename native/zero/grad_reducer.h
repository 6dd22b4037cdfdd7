#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "core/buffer.h"
#include "core/context.h"
#include "core/dtype.h"
#include "zero/comm_queue.h"
#include "zero/leaf_schedule.h"
#include "zero/shard_layout.h"
#include "zero/staging_pool.h"

namespace zerofleet {

/// Brings gradients to their owners: a full bucket is exchanged all-to-all, and this rank adds the pieces of the blocks
/// that it owns to its fp32 shard in lane order, (((0 + g0) + g1) + g2) …, whatever the world size. Runs on the
/// communication thread, behind the back of backward.
class GradReducer {
 public:
  /// All referenced objects must outlive this one.
  GradReducer(const Context& context, const ShardLayout& layout, Communicator& communicator, CommQueue& queue,
              StagingPool& pool, DType reduce_dtype, const LeafSchedule& schedule);

  /// Posts one bucket of this rank's lane in `round`; the contents go back to the pool.
  void reduce_bucket(std::int64_t round, std::int64_t bucket, Buffer contents);
  /// For a rank without a lane in `round`: takes part in the exchange of a bucket with nothing to give.
  void reduce_nothing(std::int64_t round, std::int64_t bucket);

  /// fp32 sums over the lanes, owned blocks only, laid out as ShardLayout says. Valid after the queue is drained.
  std::span<const float> grad_shard() const { return grad_shard_.as<float>(); }

  std::size_t staging_bytes() const { return recv_.num_bytes(); }

 private:
  /// `contents` is the bucket, or empty where this rank has no lane.
  void exchange_and_fold(std::int64_t round, std::int64_t bucket, std::span<const std::byte> contents);
  std::span<const std::byte> exchange(std::int64_t bucket, int num_senders, std::span<const std::byte> contents);

  Context context_;  // of the communication thread: the pool of the rank is busy with backward
  ThreadPool own_pool_{1};
  const ShardLayout& layout_;
  Communicator& communicator_;
  CommQueue& queue_;
  StagingPool& pool_;
  std::size_t width_;  // bytes per element on the way
  DType reduce_dtype_;
  LeafSchedule schedule_;
  std::vector<std::int64_t> shard_offsets_;  // (num_buckets) element of the shard at which a bucket's blocks begin
  Buffer grad_shard_;
  Buffer recv_;  // pieces of one bucket, one per sending rank
};

}  // namespace zerofleet
