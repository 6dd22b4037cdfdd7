#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/device/buffer.h"
#include "core/dtype.h"
#include "zero/exchange/comm_queue.h"
#include "zero/exchange/grad_exchange.h"
#include "zero/offload/offload.h"
#include "zero/offload/staging_pool.h"
#include "zero/partition/leaf_schedule.h"
#include "zero/partition/shard_layout.h"

namespace zerofleet {

/// Components that gradients of all parts of a rank pass through.
struct GradRoute {
  CommQueue& queue;
  StagingPool& staging;
  StatePlacement& placement;
};

/// Reduces gradients to their owners. A full bucket is exchanged. This rank adds the terms of its blocks to its shard,
/// in an order that does not depend on the world size (see GradExchange). Runs on the communication thread, during
/// backward.
class GradReducer {
 public:
  struct DTypes {
    DType reduce = DType::kBF16;  // of buckets
    DType sum = DType::kF32;      // of the shard; a 16-bit sum is rounded after each piece
  };

  /// `schedule`: that of the pass with the most lanes, and of passes until begin_pass(). All other referenced objects
  /// must outlive this one.
  GradReducer(const ShardLayout& layout, int rank, const LeafSchedule& schedule, Communicator& communicator,
              const GradRoute& route, const DTypes& dtypes);

  /// Begins a pass. `starts_sum`: it is the first of its step. The queue must be drained.
  void begin_pass(const LeafSchedule& schedule, bool starts_sum);
  /// Posts a bucket of this rank's lane in `round`. Its buffer returns to the pool.
  void reduce_bucket(std::int64_t round, std::int64_t bucket, Buffer contents);
  /// Takes part in the exchange of a bucket in a round in which this rank has no lane.
  void reduce_nothing(std::int64_t round, std::int64_t bucket);

  /// Sums over the lanes for the owned blocks, laid out as in ShardLayout, in the memory of the placement. Valid once
  /// the queue is drained.
  std::span<const std::byte> grad_shard() const { return {grad_shard_.data(), grad_shard_.num_bytes()}; }
  DType sum_dtype() const { return dtypes_.sum; }

  std::size_t staging_bytes() const { return exchange_->staging_bytes(); }

 private:
  LaneRound lanes_of(std::int64_t round) const;
  /// `contents`: the bucket, or empty if this rank has no lane.
  void exchange_and_fold(const LaneRound& round, std::int64_t bucket, std::span<std::byte> contents);

  const ShardLayout& layout_;
  int rank_;
  GradRoute route_;
  LeafSchedule schedule_;  // of the current pass
  bool starts_sum_ = true;
  std::unique_ptr<GradExchange> exchange_;
  DTypes dtypes_;
  std::vector<std::int64_t> shard_offsets_;  // (num_buckets) first element of each bucket in the shard
  Buffer grad_shard_;
};

}  // namespace zerofleet
