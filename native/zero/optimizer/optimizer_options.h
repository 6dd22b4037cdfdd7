#pragma once

#include <cstdint>
#include <string_view>

namespace zerofleet {

/// All optimizers: type, name in settings and functions, and the shared constants that each one uses.
#define ZF_OPTIMIZERS(X)          \
  X(kAdamW, adamw, kBetas | kEps) \
  X(kAdam, adam, kBetas | kEps)   \
  X(kLamb, lamb, kBetas | kEps)   \
  X(kLion, lion, kBetas)          \
  X(kAdagrad, adagrad, kEps)      \
  X(kSgd, sgd, kNone)

enum class OptimizerType : std::uint8_t {
#define ZF_TYPE(type, name, constants) type,
  ZF_OPTIMIZERS(ZF_TYPE)
#undef ZF_TYPE
};

/// Correction for moments that start at zero. In LAMB's paper (You et al., 2020, algorithm 2) it corrects the moments
/// in the update, from which the trust ratio is computed. DeepSpeed's FusedLamb corrects the step size instead, and
/// computes the trust ratio from the uncorrected update.
enum class BiasCorrection : std::uint8_t { kUpdate, kStepSize, kNone };

/// Returns the type of "adamw", "adam", "lamb", "lion", "adagrad" or "sgd". Throws Error{"invalid_argument"} for other
/// names.
OptimizerType optimizer_type_from_name(std::string_view name);

/// Returns the correction of "update", "step_size" or "none". Throws Error{"invalid_argument"} for other names.
BiasCorrection bias_correction_from_name(std::string_view name);

/// Exponential moving average of the master weights.
struct EmaOptions {
  double decay = 0;  // share of the average that an update keeps; 0: no average

  template <class Fields>
  void fields(Fields& field) {
    field("decay", decay);
  }
};

/// Type and constants of an optimizer. Constants of other types are ignored. The learning rate is given per step. Rate
/// and weight decay may differ between parameter groups.
struct OptimizerOptions {
  OptimizerType type = OptimizerType::kAdamW;
  double weight_decay = 0.1;  // default for groups. adam, adagrad, sgd: L2; others: decoupled
  double beta1 = 0.9;         // adamw, adam, lamb, lion
  double beta2 = 0.95;
  double eps = 1e-8;      // not lion and sgd
  double momentum = 0.9;  // sgd, like the two fields below
  double dampening = 0;
  bool nesterov = false;
  double lr_decay = 0;  // adagrad, like the field below
  double initial_accumulator_value = 0;
  double min_coeff = 0.01;  // lamb: bounds of the trust ratio
  double max_coeff = 10;
  BiasCorrection bias_correction = BiasCorrection::kUpdate;  // lamb
  EmaOptions ema;                                            // of the master; a section of its own in settings

  template <class Fields>
  void fields(Fields& field) {
    field("type", type, optimizer_type_from_name);
    field("weight_decay", weight_decay);
    field.if_present("beta1", beta1);
    field.if_present("beta2", beta2);
    field.if_present("eps", eps);
    field.if_present("momentum", momentum);
    field.if_present("dampening", dampening);
    field.if_present("nesterov", nesterov);
    field.if_present("lr_decay", lr_decay);
    field.if_present("initial_accumulator_value", initial_accumulator_value);
    field.if_present("min_coeff", min_coeff);
    field.if_present("max_coeff", max_coeff);
    field.if_present("bias_correction", bias_correction, bias_correction_from_name);
  }
};

const char* name_of(OptimizerType type);

/// Throws Error{"invalid_argument"} that names the field and the allowed values.
void validate(const OptimizerOptions& options);

}  // namespace zerofleet
