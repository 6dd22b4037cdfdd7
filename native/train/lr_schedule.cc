#include "train/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"
#include "core/portable_math.h"

namespace zerofleet {
namespace {

/// DeepSpeed takes the logarithm to the base of at least 2 steps, so a single warm-up step is one at the start rate.
double log_warmup(std::int64_t steps_done, std::int64_t warmup_steps) {
  return portable::log(static_cast<double>(steps_done + 1)) /
         portable::log(static_cast<double>(std::max<std::int64_t>(2, warmup_steps)));
}

double warmup_lr(const LrSchedule& schedule, std::int64_t steps_done) {
  const double rise = schedule.peak_lr - schedule.warmup_start_lr;
  if (schedule.warmup_type == WarmupType::kLog) {
    return schedule.warmup_start_lr + rise * log_warmup(steps_done, schedule.warmup_steps);
  }
  return schedule.warmup_start_lr +
         rise * static_cast<double>(steps_done + 1) / static_cast<double>(schedule.warmup_steps);
}

/// Progress, from 0 to 1, of the decay that begins after `first_step` steps and takes `num_steps`.
double progress_of(std::int64_t steps_done, std::int64_t first_step, std::int64_t num_steps) {
  const auto length = static_cast<double>(std::max<std::int64_t>(1, num_steps));
  return std::clamp(static_cast<double>(steps_done - first_step) / length, 0.0, 1.0);
}

}  // namespace

LrScheduleType lr_schedule_type_from_name(std::string_view name) {
  if (name == "constant") return LrScheduleType::kConstant;
  if (name == "linear") return LrScheduleType::kLinear;
  if (name == "cosine") return LrScheduleType::kCosine;
  if (name == "wsd") return LrScheduleType::kWsd;
  throw Error("invalid_argument", "no learning-rate schedule '" + std::string(name) + "'");
}

WarmupType warmup_type_from_name(std::string_view name) {
  if (name == "linear") return WarmupType::kLinear;
  if (name == "log") return WarmupType::kLog;
  throw Error("invalid_argument", "no type of warm-up '" + std::string(name) + "'; it is linear or log");
}

double LrSchedule::at(std::int64_t steps_done) const {
  if (steps_done < warmup_steps) return warmup_lr(*this, steps_done);
  const double progress = progress_of(steps_done, warmup_steps, total_steps - warmup_steps);
  switch (type) {
    case LrScheduleType::kConstant:
      return peak_lr;
    case LrScheduleType::kLinear:
      return peak_lr + (min_lr - peak_lr) * progress;
    case LrScheduleType::kCosine:
      return min_lr + 0.5 * (peak_lr - min_lr) * (1.0 + portable::sin_cos_of_turns(progress / 2).cos);
    case LrScheduleType::kWsd:
      return peak_lr + (min_lr - peak_lr) * progress_of(steps_done, total_steps - decay_steps, decay_steps);
  }
  return peak_lr;
}

void validate(const LrSchedule& schedule) {
  for (const double lr : {schedule.peak_lr, schedule.min_lr, schedule.warmup_start_lr}) {
    require(std::isfinite(lr) && lr >= 0, "invalid_argument", "a learning rate must be finite and not negative");
  }
  require(schedule.total_steps >= 1, "invalid_argument", "a job needs at least one step");
  require(schedule.warmup_steps >= 0, "invalid_argument", "lr_schedule.warmup_steps must not be negative");
  if (schedule.type != LrScheduleType::kWsd) return;
  require(schedule.decay_steps >= 1 && schedule.decay_steps <= schedule.total_steps, "invalid_argument",
          "lr_schedule.decay_steps is the length of the decay at the end of a wsd schedule: 1 to " +
              std::to_string(schedule.total_steps) + " steps of this job");
}

}  // namespace zerofleet
