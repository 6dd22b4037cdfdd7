#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/device/context.h"
#include "zero/exchange/bucket_order.h"
#include "zero/exchange/comm_queue.h"
#include "zero/exchange/leaf_arrivals.h"
#include "zero/offload/offload.h"
#include "zero/offload/staging_pool.h"
#include "zero/optimizer/optimizer_rule.h"
#include "zero/optimizer/trust_ratios.h"
#include "zero/partition/digest.h"
#include "zero/partition/leaf_schedule.h"
#include "zero/step/model_part.h"
#include "zero/step/model_plan.h"
#include "zero/step/quantized_part.h"
#include "zero/step/trained_part.h"
#include "zero/step/zero_comms.h"
#include "zero/step/zero_memory.h"

namespace zerofleet {

/// All parts of the model that one rank holds, their shared components, and the location of each parameter. Parameters
/// have canonical numbers.
class RankParts {
 public:
  /// All referenced objects must outlive this one. Throws Error{"invalid_argument"} if the groups of `comms` do not
  /// match the plan.
  RankParts(const Context& context, const ZeroComms& comms, const std::vector<PlannedPart>& plan,
            const LeafSchedule& schedule, const ZeroOptions& options);
  ~RankParts();

  /// Location of a parameter.
  struct Location {
    ModelPart* part = nullptr;           // null: quantized, or held by other ranks
    TrainedPart* trained = nullptr;      // null: frozen, or held by other ranks
    QuantizedPart* quantized = nullptr;  // null: not quantized, or held by other ranks
    std::size_t local = 0;
  };
  const Location& location(std::size_t param) const { return locations_[param]; }
  std::vector<GradRole> grad_roles() const;
  /// Elements in compute dtype, by parameter; null for quantized parameters and those of other ranks. Likewise the
  /// quantized matrices; null for all other parameters, and empty without any.
  std::span<const std::byte* const> params() const { return params_; }
  std::span<const QuantizedMatrix* const> quantized_params() const { return quantized_params_; }

  /// Parts of this rank, in the order of the plan: trained and frozen ones, the trained ones among these, and quantized
  /// ones.
  std::span<const std::unique_ptr<ModelPart>> parts() const { return parts_; }
  std::span<const std::unique_ptr<TrainedPart>> trained() const { return trained_; }
  std::span<const std::unique_ptr<QuantizedPart>> quantized() const { return quantized_; }

  /// As GradReducer::begin_pass(). `schedule`: of the whole world.
  void begin_pass(const LeafSchedule& schedule, bool starts_sum);
  void begin_leaf(const ScheduledLeaf& scheduled);
  void add_grad(std::size_t param, const GradView& grad);
  std::byte* room_for(std::size_t param, DType dtype);
  /// Takes part in the exchanges of a round in which this rank has no lane.
  void join_round(std::int64_t round);
  /// Runs an exchange of the rank itself in turn with those of buckets, and waits for it.
  void run_exchange(const std::function<void()>& exchange);
  /// Updates all states, and posts the gathering of parameters.
  void update(const UpdateScalars& scalars);
  /// Trust ratios of the last update, by group of parameters. Of experts, only those of this rank count. Empty for
  /// rules without trust ratios.
  std::vector<TrustRatios> trust_ratios(std::size_t num_groups) const;

  /// Owned ranges of all states, and their share of the state digest: of the base of adapters, or of all else.
  std::vector<StateRange> ranges(bool of_base) const;
  Digest128 digest(bool of_base) const;

  CommQueue& queue() { return queue_; }
  const StatePlacement& placement() const { return *placement_; }
  OptimizerRule& rule() { return *rule_; }
  ZeroMemory memory() const;

 private:
  Communicator& communicator_of(const PlannedPart& plan, const ZeroComms& comms) const;
  void add_part(const PlannedPart& plan, const ZeroComms& comms, const PartTools& tools);
  void add_quantized(const PlannedPart& plan, const ZeroComms& comms, const PartTools& tools);
  std::vector<BucketId> buckets_in_order() const;

  LeafSchedule schedule_;
  ScheduledLeaf scheduled_;
  std::unique_ptr<OptimizerRule> rule_;
  CommQueue queue_;
  std::unique_ptr<StatePlacement> placement_;
  HostWindows windows_;
  StagingPool staging_;
  std::vector<std::unique_ptr<ModelPart>> parts_;
  std::vector<std::unique_ptr<TrainedPart>> trained_;
  std::vector<std::unique_ptr<QuantizedPart>> quantized_;
  BucketOrder order_;                     // its parts are indices of trained_
  std::optional<std::size_t> shared_;     // index in trained_ of the part that all ranks hold, if it is trained
  std::vector<Location> locations_;       // (parameters of the model)
  std::vector<const std::byte*> params_;  // (parameters of the model)
  std::vector<const QuantizedMatrix*> quantized_params_;  // (parameters of the model), or empty
};

}  // namespace zerofleet
