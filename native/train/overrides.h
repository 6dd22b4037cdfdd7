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

/// A change from a step boundary on: it is in force for the step that follows `step` finished ones and all after it,
/// until a later entry changes the same setting.
struct Override {
  std::int64_t step = 0;
  OverrideChange lr;          // taken back: the rate of the schedule
  OverrideChange loss_scale;  // taken back: the scale of the loss scaler
  std::map<std::string, OverrideChange> group_lr = {};  // by the pattern of a parameter group; taken back: its share of the rate
};

/// The changes that a job's spec names. A pure function of the step, so it needs no state in a checkpoint.
class Overrides {
 public:
  Overrides() = default;
  /// Throws Error{"invalid_argument"} unless the steps ascend and the values can be a rate and a scale.
  explicit Overrides(std::vector<Override> entries);

  /// Value in force for the step that follows `steps_done` finished ones; nullopt if there is none.
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
