#include "zero/step/zero_rank.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "core/error.h"
#include "zero/exchange/stopwatch.h"
#include "zero/step/grad_stats.h"

namespace zerofleet {
namespace {

/// Checked, and with what was left to defaults filled in.
ZeroOptions completed(ZeroOptions options, std::span<const ParamSpec> specs) {
  validate(options);
  if (options.param_groups.settings.empty()) {
    options.param_groups = resolve_param_groups(specs, {}, options.optimizer.weight_decay);
  }
  if (options.num_lanes == 0) options.num_lanes = options.num_leaves;
  return options;
}

/// The schedule of a step, or of the pass with the most leaves.
LeafSchedule schedule_of_step(const ZeroOptions& options, int world_size) {
  const LeafSchedule schedule(options.num_leaves, options.num_lanes, world_size, options.lane_group);
  require(options.has_passes || world_size <= options.num_lanes, "too_many_ranks",
          std::to_string(world_size) + " ranks for " + std::to_string(options.num_lanes) + " lanes of " +
              std::to_string(options.num_leaves) + " leaves per step");
  return schedule;
}

/// Leaves whose losses the statistics of a step collect. Those of passes are known before.
GradStats::LeavesOfRanks reported_leaves(const ZeroOptions& options, const LeafSchedule& schedule) {
  if (options.has_passes) return GradStats::LeavesOfRanks(static_cast<std::size_t>(schedule.world_size()));
  return schedule.leaves_of_ranks();
}

/// Adds the wall time of a call to `seconds`.
template <class Call>
void timed(double& seconds, Call&& call) {
  const Stopwatch watch;
  call();
  seconds += watch.seconds();
}

}  // namespace

ZeroOptimizer::Rank::Rank(const Context& context, const ZeroComms& comms_of_rank, std::vector<ParamSpec> all_specs,
                          const ZeroOptions& opts)
    : comms(comms_of_rank),
      specs(std::move(all_specs)),
      options(completed(opts, specs)),
      schedule(schedule_of_step(options, comms.world.world_size())),
      plan(plan_model(specs, options, comms.world.world_size())),
      parts(context, comms, plan, schedule, options),
      stats(plan, reported_leaves(options, schedule), comms, options),
      leaves(options.has_passes ? std::vector<ScheduledLeaf>{} : schedule.schedule_of(comms.world.rank())),
      arrivals(specs, parts.grad_roles()),
      scaler(options.loss_scale) {}

GlobalStats ZeroOptimizer::Rank::collect(std::uint32_t flags, StepSummary& summary) {
  timed(summary.exchange_seconds, [&] { parts.queue().drain(); });
  summary.exchange_busy_seconds = parts.queue().take_busy_seconds();
  timed(summary.optimizer_seconds, [&] { stats.measure(parts); });
  GlobalStats global;
  const auto records = options.has_passes ? std::span<const LeafRecord>{} : leaves.records();
  timed(summary.exchange_seconds, [&] { global = stats.exchange(records, flags); });
  if (options.has_passes) global.num_targets = 1;  // the divisor of a sum
  return global;
}

double ZeroOptimizer::Rank::average_factor(std::int64_t num_targets, double loss_scale) const {
  const double average = 1.0 / options.grad_unit / static_cast<double>(num_targets);
  return average / loss_scale * options.gradient_predivide_factor;
}

void ZeroOptimizer::Rank::judge(const GlobalStats& global, StepSummary& summary) const {
  summary.loss = global.loss_sum / static_cast<double>(global.num_targets);
  summary.aux_loss = global.aux_loss;
  summary.loss_scale = scaler.scale();
  summary.grad_norm = global.norm * average_factor(global.num_targets, summary.loss_scale);
  summary.num_targets = global.num_targets;
  summary.flags = global.flags;
  summary.finite = global.num_targets > 0 && std::isfinite(summary.grad_norm) && std::isfinite(summary.loss);
}

void ZeroOptimizer::Rank::update(const StepRequest& request, StepSummary& summary) {
  const std::optional<UpdateSettings>& settings = request.update;
  const double max_norm = settings ? settings->gradient_clipping : static_cast<double>(options.gradient_clipping);
  const double clip = clip_coefficient(summary.grad_norm, max_norm);
  std::vector<GroupScalars> groups;
  for (const GroupOptions& group : options.param_groups.groups) {
    double lr = request.lr * group.lr_scale;
    if (group.rule && *group.rule < request.rule_lrs.size()) lr = request.rule_lrs[*group.rule].value_or(lr);
    groups.push_back({lr, settings && group.general_decay ? settings->weight_decay : group.weight_decay});
  }
  const double factor = average_factor(summary.num_targets, summary.loss_scale) * clip;
  const UpdateScalars scalars{groups, static_cast<float>(factor), ++optimizer_steps};
  timed(summary.optimizer_seconds, [&] { parts.update(scalars); });
  summary.trust_ratios = parts.trust_ratios(groups.size());
  timed(summary.gather_seconds, [&] { parts.queue().drain(); });
  parts.queue().take_busy_seconds();  // of gathering, which is not part of the exchange
}

void ZeroOptimizer::Rank::use(const UpdateSettings& settings) {
  require(options.has_passes && std::isfinite(settings.gradient_clipping) && settings.gradient_clipping >= 0,
          "invalid_argument", "gradient_clipping must not be negative; 0 turns it off");
  OptimizerOptions constants = options.optimizer;
  constants.beta1 = settings.beta1;
  constants.beta2 = settings.beta2;
  constants.eps = settings.eps;
  constants.weight_decay = settings.weight_decay;
  validate(constants);
  parts.rule().set_constants(constants);
}

void ZeroOptimizer::Rank::join_rounds(std::int64_t first) {
  for (std::int64_t round = first; round < schedule.num_rounds(); ++round) parts.join_round(round);
}

void ZeroOptimizer::Rank::write_params() {
  for (const auto& part : parts.parts()) part->write_params();
  for (const auto& part : parts.quantized()) part->gather();
  parts.queue().drain();
}

void ZeroOptimizer::Rank::start_afresh() {
  for (const auto& part : parts.parts()) {
    part->states().reset_moments([&](StateId id) { return parts.rule().initial_value(id); });
  }
  set_progress({0, 0, LossScaler(options.loss_scale).state()});
}

void ZeroOptimizer::Rank::set_progress(const ZeroProgress& progress) {
  scaler.restore(progress.loss_scaler);
  optimizer_steps = progress.optimizer_steps;
  skipped_steps = progress.skipped_steps;
}

const RankParts::Location& ZeroOptimizer::Rank::held(StateId state, std::size_t param) const {
  require(param < specs.size(), "invalid_argument", "there is no parameter " + std::to_string(param));
  const RankParts::Location& location = parts.location(param);
  require(location.part != nullptr || location.quantized != nullptr, "slice_not_owned",
          std::string(name_of(state)) + " of '" + specs[param].name + "' is on ranks of another expert set");
  return location;
}

}  // namespace zerofleet
