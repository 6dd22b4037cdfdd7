#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/device/context.h"
#include "core/param_spec.h"
#include "zero/exchange/leaf_arrivals.h"
#include "zero/partition/leaf_schedule.h"
#include "zero/step/leaf_progress.h"
#include "zero/step/loss_scaler.h"
#include "zero/step/model_plan.h"
#include "zero/step/rank_parts.h"
#include "zero/step/step_stats.h"
#include "zero/step/zero_comms.h"
#include "zero/step/zero_optimizer.h"
#include "zero/step/zero_options.h"

namespace zerofleet {

/// The components of one rank and what passes between them in a step.
struct ZeroOptimizer::Rank {
  Rank(const Context& context, const ZeroComms& comms_of_rank, std::vector<ParamSpec> all_specs,
       const ZeroOptions& opts);

  /// Waits for the gradients, and finds what all ranks must know to go on.
  GlobalStats collect(std::uint32_t flags, StepSummary& summary);
  /// The factor from the gradient sum, which is of loss_sum × grad_unit × loss_scale / predivide factor, to the
  /// gradient of the mean over all targets.
  double average_factor(std::int64_t num_targets, double loss_scale) const;
  void judge(const GlobalStats& global, StepSummary& summary) const;
  /// Unscaling, averaging and clipping are one factor of the optimizer's pass.
  void update(const StepRequest& request, StepSummary& summary);
  /// Throws Error{"invalid_argument"}, and changes nothing then.
  void use(const UpdateSettings& settings);
  void join_rounds(std::int64_t first);

  void write_params();
  void start_afresh();
  void set_progress(const ZeroProgress& progress);
  const RankParts::Location& held(StateId state, std::size_t param) const;

  ZeroComms comms;
  const std::vector<ParamSpec> specs;
  const ZeroOptions options;
  LeafSchedule schedule;  // of a step, or of the pass
  const std::vector<PlannedPart> plan;
  RankParts parts;
  StepStats stats;
  LeafProgress leaves;
  LeafArrivals arrivals;
  LossScaler scaler;
  std::int64_t num_passes = 0;  // since the last step
  std::int64_t optimizer_steps = 0;
  std::int64_t skipped_steps = 0;
};

}  // namespace zerofleet
