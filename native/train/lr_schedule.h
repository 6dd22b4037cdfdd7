#pragma once

#include <cstdint>
#include <string_view>

namespace zerofleet {

enum class LrScheduleType : std::uint8_t { kConstant, kLinear, kCosine };

/// "constant", "linear" or "cosine". Throws Error{"invalid_argument"} for anything else.
LrScheduleType lr_schedule_type_from_name(std::string_view name);

/// Learning rate as a pure function of the step, so it needs no state in a checkpoint. Linear warm-up over the first
/// `warmup_steps` steps (the first of them already has a rate above zero), then constant, or linear or cosine decay
/// from `peak_lr` to `min_lr` at `total_steps` (Loshchilov and Hutter, "SGDR", 2017, without restarts).
struct LrSchedule {
  LrScheduleType type = LrScheduleType::kCosine;
  double peak_lr = 1e-3;
  double min_lr = 0.0;
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 1;

  /// Rate of the step that follows `steps_done` finished ones.
  double at(std::int64_t steps_done) const;
};

}  // namespace zerofleet
