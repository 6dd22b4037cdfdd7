#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace zerofleet {

/// Effect of an entry on one setting.
struct OverrideChange {
  enum class Kind : std::uint8_t { kKeep, kTakeBack, kSet };
  Kind kind = Kind::kKeep;
  double value = 0;  // for kSet

  static OverrideChange set(double value) { return {Kind::kSet, value}; }
  static OverrideChange take_back() { return {Kind::kTakeBack, 0}; }
};

/// Change of settings at a step boundary. It applies to all steps after the first `step` steps, until a later entry
/// changes the same setting.
struct Override {
  std::int64_t step = 0;
  OverrideChange lr;          // kTakeBack: the schedule applies again
  OverrideChange loss_scale;  // kTakeBack: the loss scaler applies again
  // By pattern of a parameter group. kTakeBack: lr_scale applies again.
  std::map<std::string, OverrideChange> group_lr = {};
};

/// The changes that a job's document contains. A pure function of the step, so that checkpoints need no state of it.
class Overrides {
 public:
  Overrides() = default;
  /// Throws Error{"invalid_argument"} unless the steps ascend, rates are valid and scales are valid.
  explicit Overrides(std::vector<Override> entries);

  /// Value in force for step `steps_done` + 1; nullopt if there is none.
  std::optional<double> lr(std::int64_t steps_done) const;
  std::optional<double> loss_scale(std::int64_t steps_done) const;
  std::optional<double> group_lr(std::int64_t steps_done, const std::string& match) const;
  /// Returns true if any entry names the rate of a parameter group.
  bool names_group(const std::string& match) const;

 private:
  template <class Change>
  std::optional<double> in_force(std::int64_t steps_done, Change change_of) const;

  std::vector<Override> entries_;
};

}  // namespace zerofleet
