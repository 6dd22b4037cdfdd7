#include "train/overrides.h"

#include <algorithm>
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
    for (const auto& [match, change] : entry.group_lr) {
      require(std::isfinite(change.value) && change.value >= 0, "invalid_argument",
              where + "the lr of '" + match + "' must be finite and not negative");
    }
    previous = entry.step;
  }
}

template <class Change>
std::optional<double> Overrides::in_force(std::int64_t steps_done, Change change_of) const {
  std::optional<double> value;
  for (const Override& entry : entries_) {
    if (entry.step > steps_done) break;
    const OverrideChange change = change_of(entry);
    if (change.kind == OverrideChange::Kind::kTakeBack) value.reset();
    if (change.kind == OverrideChange::Kind::kSet) value = change.value;
  }
  return value;
}

std::optional<double> Overrides::lr(std::int64_t steps_done) const {
  return in_force(steps_done, [](const Override& entry) { return entry.lr; });
}

std::optional<double> Overrides::loss_scale(std::int64_t steps_done) const {
  return in_force(steps_done, [](const Override& entry) { return entry.loss_scale; });
}

std::optional<double> Overrides::group_lr(std::int64_t steps_done, const std::string& match) const {
  return in_force(steps_done, [&](const Override& entry) {
    const auto found = entry.group_lr.find(match);
    return found == entry.group_lr.end() ? OverrideChange{} : found->second;
  });
}

bool Overrides::names_group(const std::string& match) const {
  return std::ranges::any_of(entries_, [&](const Override& entry) { return entry.group_lr.contains(match); });
}

}  // namespace zerofleet
