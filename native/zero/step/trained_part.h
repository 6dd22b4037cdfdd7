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

/// The training of one part on one rank: lanes → buckets → reducer → optimizer → parameters.
class TrainedPart {
 public:
  /// `part` must outlive the object; `on_full` gets this part's buckets. `schedule` is that of the ranks of the part.
  TrainedPart(ModelPart& part, const LeafSchedule& schedule, const PartTools& tools, StagingPool& staging,
              GradBuckets::OnFull on_full);

  ModelPart& part() { return part_; }
  GradReducer& reducer() { return reducer_; }
  GradShardView grads() const { return {reducer_.grad_shard(), reducer_.sum_dtype()}; }

  void begin_leaf(const LeafTurn& turn);
  /// A parameter by its local number.
  void add_grad(std::size_t param, const GradView& grad);
  /// As GradSink::room_for(): null where gradients do not go into a bucket as they are.
  std::byte* room_for(std::size_t param, DType dtype);

  /// Must precede update() for all parts. Throws errors of the communicator.
  void prepare(const UpdateScalars& scalars) { optimizer_.prepare(grads(), scalars, part_.communicator()); }
  std::span<const float> trust_ratios() const { return optimizer_.trust_ratios(); }
  /// Moves the states and posts the gathering of the new parameters.
  void update(const UpdateScalars& scalars);

  std::size_t lane_accumulator_bytes() const { return lanes_.num_bytes(); }
  /// Beside the buckets of the staging pool.
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
