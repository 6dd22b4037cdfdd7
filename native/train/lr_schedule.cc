#include "train/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "core/error.h"

namespace zerofleet {

LrScheduleType lr_schedule_type_from_name(std::string_view name) {
  if (name == "constant") return LrScheduleType::kConstant;
  if (name == "linear") return LrScheduleType::kLinear;
  if (name == "cosine") return LrScheduleType::kCosine;
  throw Error("invalid_argument", "no learning-rate schedule '" + std::string(name) + "'");
}

double LrSchedule::at(std::int64_t steps_done) const {
  if (steps_done < warmup_steps) {
    return peak_lr * static_cast<double>(steps_done + 1) / static_cast<double>(warmup_steps);
  }
  const auto decay_steps = static_cast<double>(std::max<std::int64_t>(1, total_steps - warmup_steps));
  const double progress = std::min(1.0, static_cast<double>(steps_done - warmup_steps) / decay_steps);
  switch (type) {
    case LrScheduleType::kConstant: return peak_lr;
    case LrScheduleType::kLinear: return peak_lr + (min_lr - peak_lr) * progress;
    case LrScheduleType::kCosine: return min_lr + 0.5 * (peak_lr - min_lr) * (1.0 + std::cos(std::numbers::pi * progress));
  }
  return peak_lr;
}

}  // namespace zerofleet
