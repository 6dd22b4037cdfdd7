#pragma once

#include <cstdint>
#include <string_view>

namespace zerofleet {

enum class LrScheduleType : std::uint8_t { kConstant, kLinear, kCosine, kWsd };
enum class WarmupType : std::uint8_t { kLinear, kLog };

/// "constant", "linear", "cosine" or "wsd". Throws Error{"invalid_argument"} for anything else.
LrScheduleType lr_schedule_type_from_name(std::string_view name);
/// "linear" or "log". Throws Error{"invalid_argument"} for anything else.
WarmupType warmup_type_from_name(std::string_view name);

/// Learning rate as a pure function of the step, so it needs no state in a checkpoint.
///
/// The first `warmup_steps` steps rise from `warmup_start_lr` to `peak_lr`, which the last of them has: with equal steps
/// (the first of them is already one step above the start), or with the logarithm of the step's number, which begins at
/// the start, as DeepSpeed's WarmupLR does it. Then
///   constant  stays;
///   linear, cosine  decay to `min_lr`, which step `total_steps` + 1 would have (cosine: Loshchilov and Hutter, "SGDR", 2017, without restarts);
///   wsd  stays ("warm-up, stable, decay", Hu et al., "MiniCPM", 2024) and decays linearly to `min_lr` over the last
///        `decay_steps` of `total_steps`.
struct LrSchedule {
  LrScheduleType type = LrScheduleType::kCosine;
  double peak_lr = 1e-3;
  double min_lr = 0.0;
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 1;
  WarmupType warmup_type = WarmupType::kLinear;
  double warmup_start_lr = 0.0;
  std::int64_t decay_steps = 0;  // wsd only

  /// Rate of the step that follows `steps_done` finished ones.
  double at(std::int64_t steps_done) const;
};

/// Throws Error{"invalid_argument"} for rates that are not finite or below zero, and for steps that don't fit into the
/// job's.
void validate(const LrSchedule& schedule);

}  // namespace zerofleet
