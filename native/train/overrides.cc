#include "train/overrides.h"

#include <cmath>
#include <string>
#include <utility>

#include "core/error.h"

namespace zerofleet {

Overrides::Overrides(std::vector<Override> entries) : entries_(std::move(entries)) {
  std::int64_t previous = -1;
  for (const Override& entry : entries_) {
    const std::string where = "overrides, step " + std::to_string(entry.step) + ": ";
    require(entry.step > previous, "invalid_argument", where + "steps must not be negative and must ascend");
    require(std::isfinite(entry.lr.value) && entry.lr.value >= 0, "invalid_argument",
            where + "lr must be finite and not negative");
    require(entry.loss_scale.kind != OverrideChange::Kind::kSet ||
                (std::isfinite(entry.loss_scale.value) && entry.loss_scale.value > 0),
            "invalid_argument", where + "loss_scale must be positive and finite");
    previous = entry.step;
  }
}

std::optional<double> Overrides::in_force(std::int64_t steps_done, OverrideChange Override::*setting) const {
  std::optional<double> value;
  for (const Override& entry : entries_) {
    if (entry.step > steps_done) break;
    const OverrideChange& change = entry.*setting;
    if (change.kind == OverrideChange::Kind::kTakeBack) value.reset();
    if (change.kind == OverrideChange::Kind::kSet) value = change.value;
  }
  return value;
}

}  // namespace zerofleet
