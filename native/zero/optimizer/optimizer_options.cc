#include "zero/optimizer/optimizer_options.h"

#include <array>
#include <cmath>
#include <string>

#include "core/error.h"

namespace zerofleet {
namespace {

// By OptimizerType.
#define ZF_NAME(type, name, constants) #name,
constexpr std::array kNames{ZF_OPTIMIZERS(ZF_NAME)};
#undef ZF_NAME
enum : unsigned { kNone = 0, kBetas = 1, kEps = 2 };
#define ZF_CONSTANTS(type, name, constants) constants,
constexpr std::array<unsigned, kNames.size()> kConstants{ZF_OPTIMIZERS(ZF_CONSTANTS)};
#undef ZF_CONSTANTS

void require_field(bool condition, const OptimizerOptions& options, const char* rule) {
  require(condition, "invalid_argument", std::string("optimizer ") + name_of(options.type) + ": " + rule);
}

bool is_at_least_zero(double value) { return value >= 0 && std::isfinite(value); }

void validate_betas(const OptimizerOptions& options) {
  // Also as fp32, which the kernels compute with: a beta that rounds to 1 would never take a gradient in.
  const auto fits = [](double beta) { return beta >= 0 && static_cast<float>(beta) < 1.0F; };
  require_field(fits(options.beta1) && fits(options.beta2), options, "both betas must be in [0, 1)");
}

void validate_eps(const OptimizerOptions& options) {
  const auto eps = static_cast<float>(options.eps);
  require_field(eps > 0 && std::isfinite(eps), options, "eps must be positive, and more than fp32's smallest number");
}

void validate_sgd(const OptimizerOptions& options) {
  const auto momentum = static_cast<float>(options.momentum);
  require_field(options.momentum == 0 || (momentum > 0 && momentum < 1), options, "momentum must be in [0, 1)");
  require_field(options.dampening >= 0 && options.dampening <= 1, options, "dampening must be in [0, 1]");
  require_field(!options.nesterov || (options.momentum > 0 && options.dampening == 0), options,
                "nesterov needs momentum above 0 and dampening 0");
}

}  // namespace

const char* name_of(OptimizerType type) { return kNames[static_cast<std::size_t>(type)]; }

OptimizerType optimizer_type_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<OptimizerType>(i);
  }
  std::string names;
  for (const char* known : kNames) names += (names.empty() ? "" : ", ") + std::string(known);
  throw Error("invalid_argument", "no optimizer '" + std::string(name) + "'; there are " + names);
}

BiasCorrection bias_correction_from_name(std::string_view name) {
  if (name == "update") return BiasCorrection::kUpdate;
  if (name == "step_size") return BiasCorrection::kStepSize;
  if (name == "none") return BiasCorrection::kNone;
  throw Error("invalid_argument", "no bias correction '" + std::string(name) + "'; it is of update, step_size or none");
}

void validate(const OptimizerOptions& options) {
  require_field(is_at_least_zero(options.weight_decay), options, "weight_decay must be a number that is not negative");
  require_field(options.ema.decay >= 0 && options.ema.decay < 1, options, "ema.decay must be in [0, 1)");
  const unsigned constants = kConstants[static_cast<std::size_t>(options.type)];
  if ((constants & kBetas) != 0) validate_betas(options);
  if ((constants & kEps) != 0) validate_eps(options);
  switch (options.type) {
    case OptimizerType::kLamb:
      require_field(options.min_coeff > 0 && options.min_coeff <= options.max_coeff && std::isfinite(options.max_coeff),
                    options, "min_coeff must be positive and not above max_coeff");
      break;
    case OptimizerType::kAdagrad:
      require_field(is_at_least_zero(options.lr_decay) && is_at_least_zero(options.initial_accumulator_value), options,
                    "lr_decay and initial_accumulator_value must not be negative");
      break;
    case OptimizerType::kSgd:
      validate_sgd(options);
      break;
    default:
      break;
  }
}

}  // namespace zerofleet
