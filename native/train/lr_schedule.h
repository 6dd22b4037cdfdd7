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

/// Learning rate as a pure function of the step, so that checkpoints need no state of it.
///
/// During the first `warmup_steps` steps the rate rises from `warmup_start_lr` to `peak_lr`, which the last of these
/// steps has. A linear warm-up rises by equal amounts; its first step is already one of them above the start. A
/// logarithmic warm-up follows the logarithm of the step's number and starts at `warmup_start_lr`, as DeepSpeed's
/// WarmupLR does.
///
/// After the warm-up:
///   constant  the rate stays.
///   linear    it decays to `min_lr`, which step `total_steps` + 1 would have.
///   cosine    the same along a cosine (Loshchilov and Hutter, "SGDR", 2017, without restarts).
///   wsd       it stays, then decays linearly to `min_lr` over the last `decay_steps` of `total_steps`
///             ("warm-up, stable, decay", Hu et al., "MiniCPM", 2024).
struct LrSchedule {
  LrScheduleType type = LrScheduleType::kCosine;
  double peak_lr = 1e-3;
  double min_lr = 0.0;
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 1;
  WarmupType warmup_type = WarmupType::kLinear;
  double warmup_start_lr = 0.0;
  std::int64_t decay_steps = 0;  // wsd only

  /// Rate of step `steps_done` + 1.
  double at(std::int64_t steps_done) const;
};

/// Throws Error{"invalid_argument"} for rates that are negative or not finite, and for phases that exceed
/// `total_steps`.
void validate(const LrSchedule& schedule);

}  // namespace zerofleet
