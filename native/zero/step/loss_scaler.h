#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace zerofleet {

enum class LossScaleType : std::uint8_t { kNone, kStatic, kDynamic };

/// "none", "static" or "dynamic". Throws Error{"invalid_argument"} for anything else.
LossScaleType loss_scale_type_from_name(std::string_view name);

struct LossScaleOptions {
  LossScaleType type = LossScaleType::kNone;  // none: a scale of 1
  double initial_scale = 65536;               // the scale itself when static
  std::int64_t window = 1000;                 // dynamic: finite steps since the last overflow that double the scale
  std::int64_t hysteresis = 2;                // dynamic: overflows until the scale is halved
  bool consecutive_hysteresis = false;        // dynamic: every finite step refills the hysteresis, not only a doubling
  double min_scale = 1;                       // dynamic
  // Any type: so many skipped in a row are a divergence. Without a number nothing is one, as with DeepSpeed's static scale
  // and with its FP16_Optimizer (stage 0).
  std::optional<std::int64_t> max_skipped_steps = 100;
};

/// Everything that a scaler remembers; what a checkpoint keeps of it.
struct LossScalerState {
  double scale = 1;
  std::int64_t iteration = 0;  // steps seen
  std::int64_t last_overflow_iteration = -1;
  std::int64_t hysteresis = 0;  // overflows left until the scale is halved, the one that halves it included
  std::int64_t skipped_in_a_row = 0;

  bool operator==(const LossScalerState&) const = default;
};

/// By what the loss is multiplied before backward, so that small gradients survive 16 bits. A state machine without
/// anything else: every rank that feeds it the same answers has the same scale. The dynamic scale takes the steps of
/// DeepSpeed's DynamicLossScaler (after Micikevicius et al., "Mixed precision training", 2018): halved by an overflow
/// when the hysteresis is used up, doubled after each `window` finite steps.
class LossScaler {
 public:
  /// Throws Error{"invalid_argument"} for settings that cannot work.
  explicit LossScaler(const LossScaleOptions& options);

  /// Scale of the next step.
  double scale() const { return override_.value_or(state_.scale); }

  /// After a step: were all gradients finite, and were there targets? Without them there is no update, and nothing is learnt
  /// about the scale. False when training has diverged: `max_skipped_steps` were skipped one after the other, or a gradient
  /// overflowed at the minimum scale with the hysteresis used up.
  [[nodiscard]] bool update(bool finite, bool has_targets = true);

  LossScalerState state() const { return state_; }
  /// Throws Error{"invalid_argument"} for a state that no scaler of these options can be in.
  void restore(const LossScalerState& state);

  /// Puts a scale from outside in force until it is taken back with nullopt. The scaler rests meanwhile (an overflow of
  /// another scale tells nothing about its own) and only counts skipped steps. Not part of the state: the caller
  /// remembers it. Throws Error{"invalid_argument"} unless positive and finite.
  void override_scale(std::optional<double> scale);

 private:
  bool update_dynamic(bool finite);

  LossScaleOptions options_;
  LossScalerState state_;
  std::optional<double> override_;
};

}  // namespace zerofleet
