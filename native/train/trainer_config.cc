#include "train/trainer_config.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "model/transformer/transformer.h"

namespace zerofleet {
namespace {

void validate_batch(const TrainerConfig& config) {
  const BatchShape& batch = config.batch;
  require(batch.micro_batch_size >= 1 && batch.global_batch_size % batch.micro_batch_size == 0,
          "micro_batch_not_divisor",
          "micro_batch_size " + std::to_string(batch.micro_batch_size) + " does not divide global_batch_size " +
              std::to_string(batch.global_batch_size));
  require(batch.sequence_length >= 1 && batch.sequence_length <= config.model.max_position_embeddings,
          "sequence_longer_than_model",
          "sequence_length " + std::to_string(batch.sequence_length) + " exceeds max_position_embeddings " +
              std::to_string(config.model.max_position_embeddings));
}

void validate_ranks(const TrainerConfig& config) {
  require(config.world_size >= 1 && config.rank >= 0 && config.rank < config.world_size, "invalid_argument",
          "rank " + std::to_string(config.rank) + " is outside a world of " + std::to_string(config.world_size));
  require(config.session || config.world_size <= config.batch.num_leaves(), "too_many_ranks",
          std::to_string(config.world_size) + " ranks for " + std::to_string(config.batch.num_leaves()) +
              " micro-batches per step: at least one rank would never have work");
  require(config.num_threads >= 1, "invalid_argument", "a rank needs at least one thread");
}

void validate_zero(const TrainerConfig& config) {
  const ZeroConfig& zero = config.zero;
  require(zero.stage == 1 || zero.stage == 2, "invalid_argument",
          "zero.stage " + std::to_string(zero.stage) + ": there are stages 1 and 2");
  const auto specs = param_specs(config.model);
  const bool has_experts = std::ranges::any_of(specs, [](const ParamSpec& spec) { return spec.expert >= 0; });
  require(zero.expert_parallel_size == 1 || has_experts, "model_has_no_experts",
          "zero.expert_parallel_size " + std::to_string(zero.expert_parallel_size) +
              " spreads experts over ranks, but the model has none; it must be 1");
  if (zero.stage == 2) return;
  require(zero.lanes >= 1 && zero.lanes <= config.batch.num_leaves(), "invalid_argument",
          "zero.lanes " + std::to_string(zero.lanes) + " must be 1 to the " +
              std::to_string(config.batch.num_leaves()) + " micro-batches of a step");
  require(config.world_size <= zero.lanes, "too_many_ranks",
          std::to_string(config.world_size) + " ranks for " + std::to_string(zero.lanes) +
              " lanes: at least one rank would never have work");
}

void validate_preference(const TrainerConfig& config) {
  if (!config.preference) return;
  const auto& [objective, reference] = *config.preference;
  validate(objective);
  require(objective.has_reference() == (reference != ReferenceKind::kNone), "invalid_argument",
          "ORPO and SimPO have no reference, the other objectives have one");
  require(reference != ReferenceKind::kBase || config.model.has_base(), "invalid_argument",
          "the reference 'base' is the model without its adapter, which must not have modules_to_save; use 'initial'");
}

void validate_session(const TrainerConfig& config) {
  if (!config.session) return;
  const ModelConfig& model = config.model;
  const auto check = [](bool holds, const char* what) { require(holds, "invalid_argument", what); };
  check(config.training_files.empty() && config.evaluation_files.empty() && !config.preference &&
            config.overrides.empty(),
        "a session has no files, objective or overrides: its rows and losses come with its calls");
  check(config.zero.stage == 2 && config.zero.expert_parallel_size == 1,
        "a session has zero.stage 2, and expert_parallel_size 1");
  check(config.precision != DType::kF16 && config.loss_scale.type == LossScaleType::kNone,
        "a session has precision bf16 or fp32, without a loss scale");
  check(model.embedding_dropout == 0 && model.attention_dropout == 0 && model.residual_dropout == 0 &&
            (!model.adapter || model.adapter->dropout == 0),
        "a session has no dropout");
  check(config.optimizer.type == OptimizerType::kAdamW && config.optimizer.ema.decay == 0,
        "a session has the optimizer adamw, without a moving average");
}

}  // namespace

double TrainerConfig::grad_divisor() const {
  if (session) return 1;
  const auto counted = static_cast<double>(max_counted());
  if (precision != DType::kF16) return counted;
  return counted * std::max(1.0, static_cast<double>(batch.num_leaves()) / zero.gradient_predivide_factor);
}

ZeroOptions zero_options(const TrainerConfig& config) {
  ZeroOptions options;
  static_cast<ShardingOptions&>(options) = config.zero;
  static_cast<UpdateOptions&>(options) = config;
  options.param_dtype = config.precision;
  std::vector<ParamGroupRule> rules = config.param_groups;
  const Overrides overrides(config.overrides);
  for (ParamGroupRule& rule : rules) rule.own_rate = overrides.names_group(rule.match);
  options.has_passes = config.session;
  if (config.session) options.loss_scale.max_skipped_steps = std::nullopt;  // its client decides when to stop
  options.param_groups =
      resolve_param_groups(param_specs(config.model), rules, config.optimizer.weight_decay, config.session);
  options.num_leaves = config.batch.num_leaves();
  options.num_lanes = config.zero.stage == 1 ? config.zero.lanes : 0;
  options.grad_unit = 1.0 / config.grad_divisor();
  return options;
}

void validate(const TrainerConfig& config) {
  validate_trained(config.model);
  validate_batch(config);
  validate_preference(config);
  validate_ranks(config);
  validate_zero(config);
  validate_session(config);
  validate(config.lr_schedule);
  validate(config.optimizer);
  static_cast<void>(LossScaler(config.loss_scale));
  validate(zero_options(config));
  static_cast<void>(Overrides(config.overrides));
}

}  // namespace zerofleet
