#include "zero/step/loss_scaler.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"

namespace zerofleet {
namespace {

constexpr double kScaleFactor = 2.0;

/// Overflows until the scale is halved; 1 for a scale that never changes.
std::int64_t hysteresis_of(const LossScaleOptions& options) {
  return options.type == LossScaleType::kDynamic ? options.hysteresis : 1;
}

bool is_scale(double value) { return std::isfinite(value) && value > 0; }

const LossScaleOptions& checked(const LossScaleOptions& options) {
  require(options.max_skipped_steps.value_or(1) >= 1, "invalid_argument",
          "loss_scale.max_skipped_steps must be at least 1");
  if (options.type == LossScaleType::kNone) return options;
  require(is_scale(options.initial_scale), "invalid_argument", "loss_scale.initial_scale must be positive and finite");
  if (options.type == LossScaleType::kStatic) return options;
  require(options.window >= 1, "invalid_argument", "loss_scale.window must be at least 1 step");
  require(options.hysteresis >= 1, "invalid_argument", "loss_scale.hysteresis must be at least 1 overflow");
  require(is_scale(options.min_scale) && options.min_scale <= options.initial_scale, "invalid_argument",
          "loss_scale.min_scale must be positive and not above initial_scale");
  return options;
}

}  // namespace

LossScaleType loss_scale_type_from_name(std::string_view name) {
  if (name == "none") return LossScaleType::kNone;
  if (name == "static") return LossScaleType::kStatic;
  if (name == "dynamic") return LossScaleType::kDynamic;
  throw Error("invalid_argument", "no type of loss scale '" + std::string(name) + "'; it is none, static or dynamic");
}

LossScaler::LossScaler(const LossScaleOptions& options) : options_(checked(options)) {
  state_.scale = options.type == LossScaleType::kNone ? 1.0 : options.initial_scale;
  state_.hysteresis = hysteresis_of(options);
}

bool LossScaler::update(bool finite, bool has_targets) {
  state_.skipped_in_a_row = finite && has_targets ? 0 : state_.skipped_in_a_row + 1;
  const bool moves = options_.type == LossScaleType::kDynamic && !override_ && has_targets;
  const bool can_go_on = !moves || update_dynamic(finite);
  return !options_.max_skipped_steps || (can_go_on && state_.skipped_in_a_row < *options_.max_skipped_steps);
}

bool LossScaler::update_dynamic(bool finite) {
  bool can_go_on = true;
  if (!finite) {
    if (state_.hysteresis > 1) {
      --state_.hysteresis;
    } else {
      can_go_on = state_.scale > options_.min_scale;
      state_.scale = std::max(state_.scale / kScaleFactor, options_.min_scale);
    }
    state_.last_overflow_iteration = state_.iteration;
  } else {
    const std::int64_t stable_steps = state_.iteration - state_.last_overflow_iteration - 1;
    const bool doubles = stable_steps > 0 && stable_steps % options_.window == 0;
    if (doubles) state_.scale *= kScaleFactor;
    if (doubles || options_.consecutive_hysteresis) state_.hysteresis = options_.hysteresis;
  }
  ++state_.iteration;
  return can_go_on;
}

void LossScaler::restore(const LossScalerState& state) {
  const bool possible = is_scale(state.scale) && state.iteration >= 0 && state.last_overflow_iteration >= -1 &&
                        state.last_overflow_iteration < state.iteration && state.skipped_in_a_row >= 0;
  require(possible, "invalid_argument", "the saved state of the loss scaler is not one that a scaler can be in");
  state_ = state;
  // The current options take precedence over those that the state was saved with.
  if (options_.type != LossScaleType::kDynamic) {
    state_.scale = options_.type == LossScaleType::kNone ? 1.0 : options_.initial_scale;
  } else {
    state_.scale = std::max(state_.scale, options_.min_scale);
  }
  state_.hysteresis = std::clamp<std::int64_t>(state.hysteresis, 1, hysteresis_of(options_));
}

void LossScaler::override_scale(std::optional<double> scale) {
  require(!scale || is_scale(*scale), "invalid_argument", "a loss scale must be positive and finite");
  override_ = scale;
}

}  // namespace zerofleet
