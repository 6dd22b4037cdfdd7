#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "zero/exchange/grad_bucket.h"
#include "zero/exchange/grad_reducer.h"
#include "zero/exchange/lane_accumulator.h"
#include "zero/offload/staging_pool.h"
#include "zero/optimizer/sharded_optimizer.h"
#include "zero/partition/leaf_schedule.h"
#include "zero/step/model_part.h"

namespace zerofleet {

/// Training of one part on one rank: lanes → buckets → reducer → optimizer → parameters.
class TrainedPart {
 public:
  /// `part` must outlive the object. `on_full`: receives this part's full buckets. `schedule`: of the ranks that hold
  /// the part.
  TrainedPart(ModelPart& part, const LeafSchedule& schedule, const PartTools& tools, StagingPool& staging,
              GradBuckets::OnFull on_full);

  ModelPart& part() { return part_; }
  GradReducer& reducer() { return reducer_; }
  GradShardView grads() const { return {reducer_.grad_shard(), reducer_.sum_dtype()}; }

  void begin_leaf(const ScheduledLeaf& scheduled);
  /// Adds a gradient. `param`: local number.
  void add_grad(std::size_t param, const GradView& grad);
  /// As GradSink::room_for(). Null if gradients do not enter a bucket without conversion.
  std::byte* room_for(std::size_t param, DType dtype);

  /// Must be called for all parts before update(). Throws errors of the communicator.
  void prepare(const UpdateScalars& scalars) { optimizer_.prepare(grads(), scalars, part_.communicator()); }
  std::span<const float> trust_ratios() const { return optimizer_.trust_ratios(); }
  /// Updates the states, and posts the gathering of the new parameters.
  void update(const UpdateScalars& scalars);

  std::size_t lane_accumulator_bytes() const { return lanes_.num_bytes(); }
  /// Bytes in addition to the buckets of the staging pool.
  std::size_t send_staging_bytes() const { return buckets_.scratch_bytes(); }
  std::size_t receive_staging_bytes() const { return reducer_.staging_bytes(); }

 private:
  ModelPart& part_;
  LaneAccumulator lanes_;
  GradBuckets buckets_;
  GradReducer reducer_;
  ShardedOptimizer optimizer_;
};

}  // namespace zerofleet
