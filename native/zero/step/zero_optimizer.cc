#include "zero/step/zero_optimizer.h"

#include <cmath>
#include <iomanip>
#include <sstream>
#include <string>
#include <utility>

#include "core/error.h"
#include "zero/step/zero_rank.h"

namespace zerofleet {
namespace {

/// Message of a divergence. `scale` is the loss scale of its last step.
std::string divergence(LossScaleType type, double scale) {
  std::ostringstream text;
  text << "gradients were not finite in too many steps in a row, or at the smallest loss scale";
  if (type != LossScaleType::kNone) text << "; the last one had a loss scale of " << std::setprecision(17) << scale;
  return text.str();
}

}  // namespace

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

void ZeroOptimizer::begin_pass(std::int64_t num_leaves) {
  Rank& rank = *rank_;
  require(rank.options.has_passes && num_leaves >= 1 && num_leaves <= rank.options.num_leaves, "invalid_argument",
          "a pass of " + std::to_string(num_leaves) + " leaves; it has 1 to " +
              std::to_string(rank.options.num_leaves) + ", in a training whose steps have passes");
  require(rank.leaves.done(), "leaf_out_of_order", "the pass before has leaves left to compute");
  const int world_size = rank.comms.world.world_size();
  rank.schedule = {num_leaves, num_leaves, world_size, rank.options.lane_group};
  rank.leaves.begin_pass(rank.schedule.schedule_of(rank.comms.world.rank()));
  rank.parts.begin_pass(rank.schedule, rank.num_passes == 0);
  ++rank.num_passes;
  if (rank.leaves.done()) rank.join_rounds(0);  // this rank has no leaf
}

void ZeroOptimizer::end_pass() {
  require(rank_->leaves.done(), "leaf_out_of_order", "the pass has leaves left to compute");
  rank_->parts.queue().drain();
}

void ZeroOptimizer::drop_passes() {
  require(rank_->leaves.done(), "leaf_out_of_order", "the pass has leaves left to compute");
  rank_->num_passes = 0;
}

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
  rank.join_rounds(scheduled.round + 1);
}

void ZeroOptimizer::run_exchange(const std::function<void()>& exchange) { rank_->parts.run_exchange(exchange); }

StepSummary ZeroOptimizer::step(const StepRequest& request) {
  Rank& rank = *rank_;
  require(rank.leaves.done(), "leaf_out_of_order", "the step has leaves left to compute");
  require(!rank.options.has_passes || rank.num_passes > 0, "no_gradients",
          "no pass has added gradients since the last step");
  if (request.update) rank.use(*request.update);
  StepSummary summary;
  const GlobalStats global = rank.collect(request.flags, summary);
  rank.judge(global, summary);
  const bool has_targets = global.num_targets > 0;
  const bool goes_on = rank.scaler.update(std::isfinite(global.norm) && std::isfinite(global.loss_sum), has_targets);
  summary.finite ? rank.update(request, summary) : void(++rank.skipped_steps);
  rank.num_passes = 0;
  if (!rank.options.has_passes) rank.leaves.begin_step();
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
