#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "core/cuda/cuda_runtime.h"
#include "core/error.h"
#include "kernels/common/backend.h"
#include "train/step/leaf_gradients.h"
#include "zero/partition/leaf_schedule.h"

namespace zerofleet {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool is_at(const std::unique_ptr<Communicator>& communicator, int rank, int world_size) {
  return communicator != nullptr && communicator->rank() == rank && communicator->world_size() == world_size;
}

void check_comms(const TrainerConfig& config, const TrainerComms& comms) {
  require(is_at(comms.world, config.rank, config.world_size), "invalid_argument",
          "the communicator is not of the rank and world that the configuration names");
  const int num_sets = config.zero.expert_parallel_size;
  if (num_sets == 1) return;
  require(is_at(comms.same_experts, config.rank / num_sets, config.world_size / num_sets) &&
              is_at(comms.all_experts, config.rank % num_sets, num_sets),
          "invalid_argument", "expert sets need communicators among ranks with the same set and with all sets");
}

/// The configuration, when it was checked and its memory is reserved.
const TrainerConfig& prepared(const TrainerConfig& config, const TrainerComms& comms) {
  validate(config);
  check_comms(config, comms);
  if (config.device.kind == DeviceKind::kCuda) {
    if (config.reserved_bytes > 0) cuda::reserve(config.device, config.reserved_bytes);
    cuda::reset_peak(config.device);  // reserved memory counts when it is used
  }
  return config;
}

std::unique_ptr<CountingComm> counted(std::unique_ptr<Communicator> communicator) {
  return communicator ? std::make_unique<CountingComm>(std::move(communicator)) : nullptr;
}

/// Products write gradients of weights in the type to which the exchange would round them. That needs a device whose
/// products round their sums once and are not slower with it.
DType weight_gradients(const TrainerConfig& config) {
  const ZeroOptions options = zero_options(config);
  const bool in_place = backend_of(config.device).products_round_gradients &&
                        options.reduce_dtype == config.precision && gradients_are_only_rounded(options);
  return in_place ? config.precision : DType::kF32;
}

std::vector<bool> frozen_params(const TrainerConfig& config) {
  std::vector<bool> frozen;
  for (const ParamSettings& settings : zero_options(config).param_groups.settings) frozen.push_back(settings.frozen);
  return frozen;
}

LeafSchedule schedule_of(const TrainerConfig& config) {
  const ZeroOptions options = zero_options(config);
  const std::int64_t num_lanes = options.num_lanes == 0 ? options.num_leaves : options.num_lanes;
  return {options.num_leaves, num_lanes, config.world_size, options.lane_group};
}

std::optional<BatchSource> batch_source(const TrainerConfig& config) {
  if (config.session) return std::nullopt;
  return BatchSource(config.training_files, config.batch, config.model.vocab_size, config.data_seed,
                     config.unit_sequences());
}

ZeroComms zero_comms(Communicator& world, Communicator* same_experts) {
  ZeroComms comms(world);
  comms.expert = same_experts;
  return comms;
}

}  // namespace

Trainer::Trainer(const TrainerConfig& config, TrainerComms comms)
    : config_(prepared(config, comms)),
      specs_(param_specs(config.model)),
      norm_init_(specs_),
      pool_(config.num_threads),
      stream_(config.device),
      context_{config.device, &pool_, config.cpu_isa, &stream_},
      communicator_(counted(std::move(comms.world))),
      same_experts_(counted(std::move(comms.same_experts))),
      all_experts_(counted(std::move(comms.all_experts))),
      expert_rows_(all_experts_ ? std::optional<ExpertRowsComm>(std::in_place, *all_experts_, context_) : std::nullopt),
      batches_(batch_source(config)),
      model_(context_, config.model, config.precision, config.leaf_sequences(), config.batch.sequence_length,
             {config.activation_checkpointing, WeightUse::kInPlace, expert_rows_ ? &*expert_rows_ : nullptr,
              weight_gradients(config), frozen_params(config)}),
      optimizer_(context_, zero_comms(*communicator_, same_experts_.get()), specs_, zero_options(config)),
      overrides_(config.overrides) {
  for (const std::vector<std::string>& files : config.evaluation_files) {
    evaluation_.emplace_back(files, config.batch.sequence_length, config.model.vocab_size, config.unit_sequences());
  }
  config.session ? make_passes() : make_loss();
  model_.bind_params(optimizer_.params(), optimizer_.quantized_params());
  // Exchanges of two NCCL communicators must not be in progress on one device at the same time. On different ranks each
  // could wait for resources that the other holds.
  if (expert_rows_ && config.device.kind == DeviceKind::kCuda) {
    expert_rows_->run_by([this](const std::function<void()>& exchange) { optimizer_.run_exchange(exchange); });
  }
}

void Trainer::make_loss() {
  loss_ = make_training_loss(config_.preference, {model_,
                                                  *batches_,
                                                  evaluation_,
                                                  {*communicator_, config_.zero.expert_parallel_size},
                                                  batch_,
                                                  config_.leaf_sequences(),
                                                  schedule_of(config_).leaves_of_ranks()});
}

TrainingLoss& Trainer::loss() {
  require(loss_ != nullptr, "invalid_argument", "a session has no data: its steps come from calls");
  return *loss_;
}

void Trainer::abort() {
  for (const auto& comm : {communicator_.get(), same_experts_.get(), all_experts_.get()}) {
    if (comm != nullptr) comm->abort();
  }
}

void Trainer::initialize(std::size_t first) {
  optimizer_.initialize(config_.seed, first);
  norm_init_.mark(first);
  if (first == 0) params_replaced();
  steps_done_ = 0;
}

void Trainer::initialize_base(std::uint64_t seed) { optimizer_.initialize_base(seed); }
void Trainer::params_replaced() {
  if (passes_) drop_gradients();
  if (norm_init_.set(context_, config_.precision, optimizer_)) optimizer_.finish_load(optimizer_.progress());
  model_.params_changed();
}

std::vector<OwnedSlice> Trainer::slices() { return optimizer_.state_ranges(); }
std::vector<OwnedSlice> Trainer::base_slices() { return optimizer_.base_ranges(); }

void Trainer::load(StateId state, std::size_t param, std::int64_t begin, std::span<const float> values) {
  optimizer_.load_state(state, param, begin, values);
  if (state == StateId::kMaster) norm_init_.loaded(param);
}

void Trainer::finish_load(const TrainingPosition& position, Restore restore) {
  optimizer_.finish_load({position.optimizer_steps, position.skipped_steps, position.loss_scaler}, restore);
  params_replaced();
  steps_done_ = position.step;
}

TrainingPosition Trainer::position() const {
  const ZeroProgress progress = optimizer_.progress();
  return {steps_done_, progress.optimizer_steps, progress.skipped_steps, progress.loss_scaler};
}

double Trainer::lr() const { return overrides_.lr(steps_done_).value_or(config_.lr_schedule.at(steps_done_)); }

// The optimizer divides gradients by all that counts in the step. A leaf's auxiliary loss shall count the same whatever
// this divisor is, so its gradient is multiplied by the divisor first.
GradScale Trainer::grad_scale() const {
  const double scale = optimizer_.loss_scale();
  const auto of_loss = static_cast<float>(scale / config_.grad_divisor());
  if (config_.model.router_aux_loss_coef == 0) return of_loss;
  const double most = config_.grad_divisor() * static_cast<double>(config_.batch.num_leaves());
  return {of_loss, static_cast<float>(scale * static_cast<double>(loss_->num_counted(steps_done_)) / most)};
}

void Trainer::run_leaf(std::int64_t leaf, const GradScale& scale, StepSeconds& seconds) {
  const auto start = std::chrono::steady_clock::now();
  batches_->load(steps_done_, leaf, batch_);
  seconds.data += seconds_since(start);
  optimizer_.begin_leaf(leaf);
  LeafGradients gradients(optimizer_);
  const LeafKey key{config_.seed, static_cast<std::uint64_t>(steps_done_), static_cast<std::uint64_t>(leaf)};
  const LeafLoss result = loss_->run_leaf(batch_, key, scale, gradients);
  optimizer_.end_leaf(result.loss_sum, result.num_counted, result.aux_loss);
  seconds.forward += result.forward_seconds;
  seconds.backward += result.backward_seconds;
}

StepResult Trainer::step(std::uint32_t flags) {
  const auto start = std::chrono::steady_clock::now();
  TrainingLoss& training_loss = loss();
  StepSeconds seconds;
  take_sent();  // of loading, which is no step's
  const double rate = lr();
  optimizer_.override_loss_scale(overrides_.loss_scale(steps_done_));
  const GradScale scale = grad_scale();
  for (const std::int64_t leaf : optimizer_.leaves()) run_leaf(leaf, scale, seconds);
  StepRequest request{rate, flags};
  for (const ParamGroupRule& rule : config_.param_groups) {
    request.rule_lrs.push_back(overrides_.group_lr(steps_done_, rule.match));
  }
  const StepSummary summary = optimizer_.step(request);
  const StepReport report = training_loss.end_step(summary.num_targets);
  StepResult result = step_result(summary, rate);
  result.preference = report.preference;
  result.num_targets = report.num_targets;
  if (config_.model.router_aux_loss_coef > 0) result.aux_loss = summary.aux_loss;
  result.seconds.data = seconds.data;
  result.seconds.forward = seconds.forward;
  result.seconds.backward = seconds.backward;
  result.seconds.total = seconds_since(start);
  return result;
}

StepResult Trainer::step_result(const StepSummary& summary, double lr) {
  if (summary.finite) model_.params_changed();
  StepResult result;
  result.step = ++steps_done_;
  result.loss = summary.loss;
  result.lr = lr;
  result.grad_norm = summary.grad_norm;
  result.loss_scale = summary.loss_scale;
  result.trust_ratios = summary.trust_ratios;
  result.finite = summary.finite;
  result.skipped_steps = optimizer_.skipped_steps();
  result.flags = summary.flags;
  result.seconds.exchange = summary.exchange_seconds;
  result.seconds.exchange_busy = summary.exchange_busy_seconds;
  result.seconds.optimizer = summary.optimizer_seconds;
  result.seconds.gather = summary.gather_seconds;
  result.sent = take_sent();
  return result;
}

SentBytes Trainer::take_sent() {
  SentBytes sent = communicator_->take();
  if (!same_experts_) return sent;
  const SentBytes of_experts = same_experts_->take();
  sent.reduced += of_experts.reduced;
  sent.gathered += of_experts.gathered;
  sent.routed = all_experts_->take().reduced;
  return sent;
}

EvalResult Trainer::evaluate(std::size_t file) {
  require(file < evaluation_.size(), "no_evaluation_data",
          "the training has " + std::to_string(evaluation_.size()) + " evaluation files, none of them is number " +
              std::to_string(file));
  return loss_->evaluate(file);
}

std::vector<MemoryPart> Trainer::memory() const {
  const ZeroMemory zero = optimizer_.memory();
  const std::size_t activations = model_.activation_bytes() + sampling_bytes_;
  std::vector<MemoryPart> parts{{"params", zero.params},
                                {"grad_shard", zero.grad_shard},
                                {"master", zero.master},
                                {"moments", zero.moments},
                                {"lane_accumulator", zero.lane_accumulator},
                                {"staging", zero.send_staging + zero.receive_staging},
                                {"activations", activations},
                                {"packed_weights", model_.packed_bytes()},
                                {"shared_params", zero.shared_params}};
  if (config_.device.kind == DeviceKind::kCuda) {
    std::size_t known = zero.params + zero.lane_accumulator + activations + model_.packed_bytes();
    // Offload keeps the rest in host memory, except for some that is in transit.
    if (config_.zero.offload == Offload::kNone) {
      known += zero.grad_shard + zero.master + zero.moments + zero.send_staging + zero.receive_staging;
    }
    const std::size_t peak = cuda::memory_of(config_.device).peak;
    parts.push_back({"workspace", peak - std::min(peak, known)});
  }
  return parts;
}

Digest128 Trainer::digest_part() { return optimizer_.digest_part(); }

Digest128 Trainer::base_digest_part() { return optimizer_.base_digest_part(); }

std::size_t Trainer::owned_bytes() {
  std::size_t numel = 0;
  for (const OwnedSlice& slice : slices()) numel += static_cast<std::size_t>(slice.elements.size());
  return numel * sizeof(float);
}

void Trainer::copy_state(std::span<std::byte> target) {
  require(target.size() >= owned_bytes(), "invalid_argument", "the snapshot buffer is smaller than the owned state");
  auto* values = reinterpret_cast<float*>(target.data());
  for (const OwnedSlice& slice : slices()) {
    const auto numel = static_cast<std::size_t>(slice.elements.size());
    optimizer_.copy_state(slice.state, slice.param, slice.elements.begin, {values, numel});
    values += numel;
  }
}

}  // namespace zerofleet
