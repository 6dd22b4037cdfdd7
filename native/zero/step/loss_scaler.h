#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace zerofleet {

enum class LossScaleType : std::uint8_t { kNone, kStatic, kDynamic };

/// Returns the type of "none", "static" or "dynamic". Throws Error{"invalid_argument"} for other names.
LossScaleType loss_scale_type_from_name(std::string_view name);

struct LossScaleOptions {
  LossScaleType type = LossScaleType::kNone;  // none: a scale of 1
  double initial_scale = 65536;               // static: the scale
  std::int64_t window = 1000;                 // dynamic: finite steps since the last overflow that double the scale
  std::int64_t hysteresis = 2;                // dynamic: overflows after which the scale is halved
  bool consecutive_hysteresis = false;        // dynamic: every finite step resets the hysteresis, not only a doubling
  double min_scale = 1;                       // dynamic
  // All types: training has diverged after this many skipped steps in a row. Unset: never, as with DeepSpeed's static
  // scale and its FP16_Optimizer (stage 0).
  std::optional<std::int64_t> max_skipped_steps = 100;
};

/// State of a scaler, as a checkpoint stores it.
struct LossScalerState {
  double scale = 1;
  std::int64_t iteration = 0;  // steps seen
  std::int64_t last_overflow_iteration = -1;
  std::int64_t hysteresis = 0;  // remaining overflows, including the one that halves the scale
  std::int64_t skipped_in_a_row = 0;

  bool operator==(const LossScalerState&) const = default;
};

/// Factor of the loss before backward, so that small gradients survive 16 bits.
///
/// A pure state machine: ranks that report the same outcomes have the same scale. The dynamic scale follows DeepSpeed's
/// DynamicLossScaler (after Micikevicius et al., "Mixed precision training", 2018). An overflow halves it once the
/// hysteresis is used up; `window` finite steps double it.
class LossScaler {
 public:
  /// Throws Error{"invalid_argument"} for invalid options.
  explicit LossScaler(const LossScaleOptions& options);

  /// Scale of the next step.
  double scale() const { return override_.value_or(state_.scale); }

  /// Reports a step: whether all gradients were finite, and whether it had targets. A step without targets makes no
  /// update, and says nothing about the scale. Returns false if training has diverged: after `max_skipped_steps`
  /// skipped steps in a row, or after an overflow at the minimum scale with the hysteresis used up.
  [[nodiscard]] bool update(bool finite, bool has_targets = true);

  LossScalerState state() const { return state_; }
  /// Throws Error{"invalid_argument"} for a state that these options cannot reach.
  void restore(const LossScalerState& state);

  /// Overrides the scale until nullopt ends the override. Meanwhile the scaler only counts skipped steps, because
  /// overflows at another scale say nothing about its own. The override is not part of the state; the caller stores it.
  /// Throws Error{"invalid_argument"} unless it is positive and finite.
  void override_scale(std::optional<double> scale);

 private:
  bool update_dynamic(bool finite);

  LossScaleOptions options_;
  LossScalerState state_;
  std::optional<double> override_;
};

}  // namespace zerofleet
