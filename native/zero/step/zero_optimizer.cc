#include "zero/step/zero_optimizer.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>
#include <string>
#include <utility>

#include "core/error.h"
#include "zero/exchange/leaf_arrivals.h"
#include "zero/exchange/stopwatch.h"
#include "zero/partition/leaf_schedule.h"
#include "zero/step/grad_stats.h"
#include "zero/step/leaf_progress.h"
#include "zero/step/model_plan.h"
#include "zero/step/rank_parts.h"
#include "zero/step/step_stats.h"

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

/// Message of a divergence. `scale` is the loss scale of its last step.
std::string divergence(LossScaleType type, double scale) {
  std::ostringstream text;
  text << "gradients were not finite in too many steps in a row, or at the smallest loss scale";
  if (type != LossScaleType::kNone) text << "; the last one had a loss scale of " << std::setprecision(17) << scale;
  return text.str();
}

/// Adds the wall time of a call to `seconds`.
template <class Call>
void timed(double& seconds, Call&& call) {
  const Stopwatch watch;
  call();
  seconds += watch.seconds();
}

}  // namespace

/// The components of one rank and what passes between them in a step.
struct ZeroOptimizer::Rank {
  Rank(const Context& context, const ZeroComms& comms_of_rank, std::vector<ParamSpec> all_specs,
       const ZeroOptions& opts)
      : comms(comms_of_rank),
        specs(std::move(all_specs)),
        options(completed(opts, specs)),
        schedule(options.num_leaves, options.num_lanes, comms.world.world_size(), options.lane_group),
        plan(plan_model(specs, options, comms.world.world_size())),
        parts(context, comms, plan, schedule, options),
        stats(plan, schedule, comms, options),
        leaves(schedule.schedule_of(comms.world.rank())),
        arrivals(specs, parts.grad_roles()),
        scaler(options.loss_scale) {}

  /// Waits for the gradients, and finds what all ranks must know to go on.
  GlobalStats collect(std::uint32_t flags, StepSummary& summary) {
    timed(summary.exchange_seconds, [&] { parts.queue().drain(); });
    summary.exchange_busy_seconds = parts.queue().take_busy_seconds();
    timed(summary.optimizer_seconds, [&] { stats.measure(parts); });
    GlobalStats global;
    timed(summary.exchange_seconds, [&] { global = stats.exchange(leaves.records(), flags); });
    return global;
  }

  /// The factor from the gradient sum, which is of loss_sum × grad_unit × loss_scale / predivide factor, to the
  /// gradient of the mean over all targets.
  double average_factor(std::int64_t num_targets, double loss_scale) const {
    const double average = 1.0 / options.grad_unit / static_cast<double>(num_targets);
    return average / loss_scale * options.gradient_predivide_factor;
  }

  void judge(const GlobalStats& global, StepSummary& summary) const {
    summary.loss = global.loss_sum / static_cast<double>(global.num_targets);
    summary.aux_loss = global.aux_loss;
    summary.loss_scale = scaler.scale();
    summary.grad_norm = global.norm * average_factor(global.num_targets, summary.loss_scale);
    summary.num_targets = global.num_targets;
    summary.flags = global.flags;
    summary.finite = global.num_targets > 0 && std::isfinite(summary.grad_norm) && std::isfinite(summary.loss);
  }

  /// Unscaling, averaging and clipping are one factor of the optimizer's pass.
  void update(const StepRequest& request, StepSummary& summary) {
    const double clip = clip_coefficient(summary.grad_norm, static_cast<double>(options.gradient_clipping));
    std::vector<GroupScalars> groups;
    for (const GroupOptions& group : options.param_groups.groups) {
      const auto own =
          group.rule && *group.rule < request.rule_lrs.size() ? request.rule_lrs[*group.rule] : std::nullopt;
      groups.push_back({own.value_or(request.lr * group.lr_scale), group.weight_decay});
    }
    const double factor = average_factor(summary.num_targets, summary.loss_scale) * clip;
    const UpdateScalars scalars{groups, static_cast<float>(factor), ++optimizer_steps};
    timed(summary.optimizer_seconds, [&] { parts.update(scalars); });
    summary.trust_ratios = parts.trust_ratios(groups.size());
    timed(summary.gather_seconds, [&] { parts.queue().drain(); });
    parts.queue().take_busy_seconds();  // of gathering, which is not part of the exchange
  }

  void write_params() {
    for (const auto& part : parts.parts()) part->write_params();
    for (const auto& part : parts.quantized()) part->gather();
    parts.queue().drain();
  }

  void start_afresh() {
    for (const auto& part : parts.parts()) {
      part->states().reset_moments([&](StateId id) { return parts.rule().initial_value(id); });
    }
    set_progress({0, 0, LossScaler(options.loss_scale).state()});
  }

  void set_progress(const ZeroProgress& progress) {
    scaler.restore(progress.loss_scaler);
    optimizer_steps = progress.optimizer_steps;
    skipped_steps = progress.skipped_steps;
  }

  const RankParts::Location& held(StateId state, std::size_t param) const {
    require(param < specs.size(), "invalid_argument", "there is no parameter " + std::to_string(param));
    const RankParts::Location& location = parts.location(param);
    require(location.part != nullptr || location.quantized != nullptr, "slice_not_owned",
            std::string(name_of(state)) + " of '" + specs[param].name + "' is on ranks of another expert set");
    return location;
  }

  ZeroComms comms;
  const std::vector<ParamSpec> specs;
  const ZeroOptions options;
  LeafSchedule schedule;
  const std::vector<PlannedPart> plan;
  RankParts parts;
  StepStats stats;
  LeafProgress leaves;
  LeafArrivals arrivals;
  LossScaler scaler;
  std::int64_t optimizer_steps = 0;
  std::int64_t skipped_steps = 0;
};

ZeroOptimizer::ZeroOptimizer(const Context& context, const ZeroComms& comms, std::vector<ParamSpec> params,
                             const ZeroOptions& options)
    : rank_(std::make_unique<Rank>(context, comms, std::move(params), options)) {}

ZeroOptimizer::~ZeroOptimizer() = default;

std::span<const std::byte* const> ZeroOptimizer::params() const { return rank_->parts.params(); }

std::span<const QuantizedMatrix* const> ZeroOptimizer::quantized_params() const {
  return rank_->parts.quantized_params();
}

void ZeroOptimizer::initialize(std::uint64_t seed, std::size_t first) {
  for (const auto& part : rank_->parts.parts()) part->states().initialize_master(seed, first);
  for (const auto& part : rank_->parts.quantized()) part->initialize(seed, first);
  rank_->start_afresh();
  if (first == 0) rank_->write_params();
}

void ZeroOptimizer::initialize_base(std::uint64_t seed) {
  for (const auto& part : rank_->parts.parts()) {
    if (part->subset().base) part->states().initialize_master(seed);
  }
  for (const auto& part : rank_->parts.quantized()) part->initialize(seed, 0);
}

std::vector<std::int64_t> ZeroOptimizer::leaves() const { return rank_->schedule.leaves_of(rank_->comms.world.rank()); }

double ZeroOptimizer::loss_scale() const { return rank_->scaler.scale(); }

void ZeroOptimizer::override_loss_scale(std::optional<double> scale) { rank_->scaler.override_scale(scale); }

void ZeroOptimizer::begin_leaf(std::int64_t leaf) {
  const ScheduledLeaf& scheduled = rank_->leaves.begin(leaf);
  rank_->arrivals.begin();
  rank_->parts.begin_leaf(scheduled);
}

void ZeroOptimizer::add_grad(std::size_t param, const GradView& grad) {
  rank_->leaves.current();
  rank_->arrivals.add(param, grad.numel);
  rank_->parts.add_grad(param, grad);
}

std::byte* ZeroOptimizer::room_for(std::size_t param, DType dtype) { return rank_->parts.room_for(param, dtype); }

void ZeroOptimizer::end_leaf(double loss_sum, std::int64_t num_targets, double aux_loss) {
  Rank& rank = *rank_;
  const ScheduledLeaf scheduled = rank.leaves.current();
  rank.arrivals.require_all();
  rank.leaves.end({loss_sum, num_targets, aux_loss});
  if (!rank.leaves.done()) return;
  for (std::int64_t round = scheduled.round + 1; round < rank.schedule.num_rounds(); ++round)
    rank.parts.join_round(round);
}

void ZeroOptimizer::run_exchange(const std::function<void()>& exchange) { rank_->parts.run_exchange(exchange); }

StepSummary ZeroOptimizer::step(const StepRequest& request) {
  Rank& rank = *rank_;
  require(rank.leaves.done(), "leaf_out_of_order", "the step has leaves left to compute");
  StepSummary summary;
  const GlobalStats global = rank.collect(request.flags, summary);
  rank.judge(global, summary);
  const bool has_targets = global.num_targets > 0;
  const bool goes_on = rank.scaler.update(std::isfinite(global.norm) && std::isfinite(global.loss_sum), has_targets);
  summary.finite ? rank.update(request, summary) : void(++rank.skipped_steps);
  rank.leaves.begin_step();
  require(goes_on || has_targets, "no_targets", "too many steps in a row had no token that counts as a target");
  if (!goes_on) throw Error("diverged", divergence(rank.options.loss_scale.type, summary.loss_scale));
  return summary;
}

std::vector<StateRange> ZeroOptimizer::state_ranges() const { return rank_->parts.ranges(false); }

std::vector<StateRange> ZeroOptimizer::base_ranges() const { return rank_->parts.ranges(true); }

void ZeroOptimizer::copy_state(StateId state, std::size_t param, std::int64_t begin, std::span<float> values) const {
  const auto& location = rank_->held(state, param);
  require(location.part != nullptr, "slice_not_owned",
          "of '" + rank_->specs[param].name + "' ranks have what was quantized only");
  location.part->states().copy(state, location.local, begin, values);
}

void ZeroOptimizer::load_state(StateId state, std::size_t param, std::int64_t begin, std::span<const float> values) {
  const auto& location = rank_->held(state, param);
  if (location.quantized != nullptr && state == StateId::kMaster)
    return location.quantized->load(location.local, begin, values);
  require(location.part != nullptr, "slice_not_owned",
          std::string(name_of(state)) + " of '" + rank_->specs[param].name + "' is not kept");
  location.part->states().load(state, location.local, begin, values);
}

void ZeroOptimizer::finish_load(const ZeroProgress& progress, Restore restore) {
  require(progress.optimizer_steps >= 0 && progress.skipped_steps >= 0, "invalid_argument",
          "step counters must not be negative");
  restore == Restore::kWeights ? rank_->start_afresh() : rank_->set_progress(progress);
  rank_->write_params();
  if (restore == Restore::kWeights16Bit) refresh_master();
}

void ZeroOptimizer::refresh_master() {
  for (const auto& part : rank_->parts.parts()) part->refresh_master();
}

Digest128 ZeroOptimizer::digest_part() const { return rank_->parts.digest(false); }

Digest128 ZeroOptimizer::base_digest_part() const { return rank_->parts.digest(true); }

ZeroProgress ZeroOptimizer::progress() const {
  return {rank_->optimizer_steps, rank_->skipped_steps, rank_->scaler.state()};
}

std::int64_t ZeroOptimizer::optimizer_steps() const { return rank_->optimizer_steps; }

std::int64_t ZeroOptimizer::skipped_steps() const { return rank_->skipped_steps; }

ZeroMemory ZeroOptimizer::memory() const { return rank_->parts.memory(); }

}  // namespace zerofleet
