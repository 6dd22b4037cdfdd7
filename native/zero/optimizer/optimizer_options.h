#pragma once

#include <cstdint>
#include <string_view>

namespace zerofleet {

/// Every optimizer: its type, its name in settings and in functions, and which constants of several optimizers it has.
#define ZF_OPTIMIZERS(X)             \
  X(kAdamW, adamw, kBetas | kEps)    \
  X(kAdam, adam, kBetas | kEps)      \
  X(kLamb, lamb, kBetas | kEps)      \
  X(kLion, lion, kBetas)             \
  X(kAdagrad, adagrad, kEps)         \
  X(kSgd, sgd, kNone)

enum class OptimizerType : std::uint8_t {
#define ZF_TYPE(type, name, constants) type,
  ZF_OPTIMIZERS(ZF_TYPE)
#undef ZF_TYPE
};

/// Correction for moments that begin with zeros: LAMB's paper (You et al., 2020, algorithm 2) corrects the moments in
/// the update, of which the trust ratio is taken; DeepSpeed's FusedLamb corrects the size of the step, after a trust
/// ratio of an update that is not corrected.
enum class BiasCorrection : std::uint8_t { kUpdate, kStepSize, kNone };

/// Optimizer type and its constants; constants of other types are ignored. The learning rate comes with each step, and
/// both it and the weight decay may differ between parameter groups.
struct OptimizerOptions {
  OptimizerType type = OptimizerType::kAdamW;
  double weight_decay = 0.1;  // of groups without their own. adam, adagrad, sgd: L2; the others: decoupled
  double beta1 = 0.9;         // adamw, adam, lamb, lion
  double beta2 = 0.95;
  double eps = 1e-8;          // all but lion and sgd
  double momentum = 0.9;      // sgd, with the two after it
  double dampening = 0;
  bool nesterov = false;
  double lr_decay = 0;        // adagrad, with the one after it
  double initial_accumulator_value = 0;
  double min_coeff = 0.01;    // lamb: bounds of the trust ratio
  double max_coeff = 10;
  BiasCorrection bias_correction = BiasCorrection::kUpdate;  // lamb
  double ema_decay = 0;       // of the average of the master; 0: none is kept
};

const char* name_of(OptimizerType type);

/// "adamw", "adam", "lamb", "lion", "adagrad" or "sgd". Throws Error{"invalid_argument"} for another, naming these.
OptimizerType optimizer_type_from_name(std::string_view name);

/// "update", "step_size" or "none". Throws Error{"invalid_argument"} for another, naming these.
BiasCorrection bias_correction_from_name(std::string_view name);

/// Throws Error{"invalid_argument"} that names the field and the allowed values.
void validate(const OptimizerOptions& options);

}  // namespace zerofleet
