#include "binding/training/trainer_config_from.h"

#include <initializer_list>
#include <string>
#include <utility>

#include "binding/convert/choice.h"
#include "binding/convert/convert.h"
#include "binding/convert/model_config_from.h"
#include "core/error.h"

namespace zerofleet::binding {
namespace {

LrSchedule lr_schedule_from(const Napi::Object& schedule, double peak_lr, std::int64_t total_steps) {
  LrSchedule result;
  result.type = lr_schedule_type_from_name(string_field(schedule, "type"));
  result.peak_lr = peak_lr;
  result.total_steps = total_steps;
  result.min_lr = number_field(schedule, "min_lr");
  result.warmup_steps = int_field(schedule, "warmup_steps");
  result.warmup_type = warmup_type_from_name(string_field(schedule, "warmup_type"));
  result.warmup_start_lr = number_field(schedule, "warmup_start_lr");
  result.decay_steps = int_field(schedule, "decay_steps");
  return result;
}

LossScaleOptions loss_scale_from(const Napi::Object& loss_scale) {
  LossScaleOptions options;
  options.type = loss_scale_type_from_name(string_field(loss_scale, "type"));
  options.initial_scale = number_field(loss_scale, "initial_scale");
  options.window = int_field(loss_scale, "window");
  options.hysteresis = int_field(loss_scale, "hysteresis");
  options.consecutive_hysteresis = bool_field(loss_scale, "consecutive_hysteresis");
  options.min_scale = number_field(loss_scale, "min_scale");
  if (loss_scale.Get("max_skipped_steps").IsNull()) {
    options.max_skipped_steps = std::nullopt;
  } else {
    options.max_skipped_steps = int_field(loss_scale, "max_skipped_steps");
  }
  return options;
}

/// A missing field keeps the value in force, null resets it.
OverrideChange override_change(const Napi::Object& entry, const char* name) {
  if (entry.Get(name).IsUndefined()) return {};
  const std::optional<double> value = optional_number_field(entry, name);
  return value ? OverrideChange::set(*value) : OverrideChange::take_back();
}

std::vector<Override> overrides_from(const Napi::Array& list) {
  std::vector<Override> entries;
  for (std::uint32_t i = 0; i < list.Length(); ++i) {
    const auto entry = list.Get(i).As<Napi::Object>();
    entries.push_back({int_field(entry, "step"), override_change(entry, "lr"), override_change(entry, "loss_scale")});
    if (entry.Get("group_lr").IsUndefined()) continue;
    const Napi::Object rates = object_field(entry, "group_lr");
    const Napi::Array names = rates.GetPropertyNames();
    for (std::uint32_t j = 0; j < names.Length(); ++j) {
      const std::string match = names.Get(j).As<Napi::String>();
      entries.back().group_lr[match] = override_change(rates, match.c_str());
    }
  }
  return entries;
}

std::vector<std::string> strings_from(const Napi::Array& list) {
  std::vector<std::string> strings;
  for (std::uint32_t i = 0; i < list.Length(); ++i) strings.push_back(list.Get(i).As<Napi::String>().Utf8Value());
  return strings;
}

std::vector<ParamGroupRule> param_groups_from(const Napi::Array& list) {
  std::vector<ParamGroupRule> rules;
  for (std::uint32_t i = 0; i < list.Length(); ++i) {
    const auto group = list.Get(i).As<Napi::Object>();
    rules.push_back({string_field(group, "match"), number_field(group, "lr_scale"),
                     optional_number_field(group, "weight_decay"), bool_field(group, "frozen")});
  }
  return rules;
}

ZeroConfig zero_from(const Napi::Object& zero) {
  ZeroConfig config;
  config.stage = static_cast<int>(int_field(zero, "stage"));
  config.lanes = int_field(zero, "lanes");
  config.lane_group = int_field(zero, "lane_group");
  config.bucket_bytes = int_field(zero, "bucket_bytes");
  config.reduce_dtype = dtype_from_name(string_field(zero, "reduce_dtype"));
  config.grad_accum_dtype = dtype_from_name(string_field(zero, "grad_accum_dtype"));
  config.master_dtype = dtype_from_name(string_field(zero, "master_dtype"));
  config.gradient_predivide_factor = number_field(zero, "gradient_predivide_factor");
  config.offload = choice<Offload>(zero, "offload", {{"none", Offload::kNone}, {"cpu", Offload::kCpu}});
  config.expert_parallel_size = static_cast<int>(int_field(zero, "expert_parallel_size"));
  return config;
}

PreferenceConfig preference_from(const Napi::Object& object) {
  PreferenceConfig config;
  ObjectiveOptions& options = config.objective;
  options.kind = choice<ObjectiveKind>(object, "type", {{"dpo", ObjectiveKind::kDpo},
                                                        {"ipo", ObjectiveKind::kIpo},
                                                        {"orpo", ObjectiveKind::kOrpo},
                                                        {"kto", ObjectiveKind::kKto},
                                                        {"simpo", ObjectiveKind::kSimpo}});
  options.beta = number_field(object, "beta");
  options.label_smoothing = number_field(object, "label_smoothing");
  options.gamma = number_field(object, "gamma");
  options.desirable_weight = number_field(object, "desirable_weight");
  options.undesirable_weight = number_field(object, "undesirable_weight");
  config.reference = choice<ReferenceKind>(
      object, "reference", {{"none", ReferenceKind::kNone}, {"base", ReferenceKind::kBase}, {"initial", ReferenceKind::kInitial}});
  return config;
}

}  // namespace

Device device_from_name(const std::string& name) {
  if (name == "cpu") return {};
  require(name == "cuda", "invalid_argument", "device must be 'cpu' or 'cuda', not '" + name + "'");
  return {DeviceKind::kCuda, 0};
}

OptimizerOptions optimizer_from(const Napi::Object& optimizer) {
  OptimizerOptions options;
  options.type = optimizer_type_from_name(string_field(optimizer, "type"));
  options.weight_decay = number_field(optimizer, "weight_decay");
  options.beta1 = number_field(optimizer, "beta1");
  options.beta2 = number_field(optimizer, "beta2");
  options.eps = number_field(optimizer, "eps");
  options.momentum = number_field(optimizer, "momentum");
  options.dampening = number_field(optimizer, "dampening");
  options.nesterov = bool_field(optimizer, "nesterov");
  options.lr_decay = number_field(optimizer, "lr_decay");
  options.initial_accumulator_value = number_field(optimizer, "initial_accumulator_value");
  options.min_coeff = number_field(optimizer, "min_coeff");
  options.max_coeff = number_field(optimizer, "max_coeff");
  options.ema_decay = number_field(optimizer, "ema_decay");
  options.bias_correction = bias_correction_from_name(string_field(optimizer, "bias_correction"));
  return options;
}

TrainerConfig trainer_config_from(const Napi::Object& object) {
  TrainerConfig config;
  config.model = model_config_from(object_field(object, "model"));
  config.activation_checkpointing = bool_field(object, "activation_checkpointing");
  config.rank = static_cast<int>(int_field(object, "rank"));
  config.world_size = static_cast<int>(int_field(object, "world_size"));
  config.num_threads = static_cast<int>(int_field(object, "threads"));
  config.device = device_from_name(string_field(object, "device"));
  config.reserved_bytes = static_cast<std::size_t>(int_field(object, "reserved_bytes"));
  config.cpu_isa = cpu_isa_from_name(string_field(object, "cpu_isa"));
  config.precision = dtype_from_name(string_field(object, "precision"));
  config.batch = {int_field(object, "global_batch_size"), int_field(object, "micro_batch_size"),
                  int_field(object, "sequence_length")};
  if (!object.Get("preference").IsNull()) config.preference = preference_from(object_field(object, "preference"));
  config.token_file = string_field(object, "token_file");
  config.evaluation_files = strings_from(array_field(object, "evaluation_files"));
  config.seed = static_cast<std::uint64_t>(int_field(object, "seed"));
  config.data_seed = static_cast<std::uint64_t>(int_field(object, "data_seed"));
  const Napi::Object optimizer = object_field(object, "optimizer");
  config.optimizer = optimizer_from(optimizer);
  config.param_groups = param_groups_from(array_field(object, "param_groups"));
  config.lr_schedule = lr_schedule_from(object_field(object, "lr_schedule"), number_field(optimizer, "lr"),
                                        int_field(object, "steps"));
  config.gradient_clipping = number_field(object, "gradient_clipping");
  config.gradient_clipping_norm =
      choice<NormKind>(object, "gradient_clipping_norm", {{"l2", NormKind::kL2}, {"max", NormKind::kMax}});
  config.loss_scale = loss_scale_from(object_field(object, "loss_scale"));
  config.overrides = overrides_from(array_field(object, "overrides"));
  config.zero = zero_from(object_field(object, "zero"));
  return config;
}

}  // namespace zerofleet::binding
