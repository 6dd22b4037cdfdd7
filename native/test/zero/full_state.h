#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "zero/step/zero_optimizer.h"

namespace zerofleet::test {

/// The state of all ranks put together, as a checkpoint has it: per state, per parameter, all elements; NaN where no
/// rank saved anything.
struct FullState {
  std::vector<std::vector<float>> values[kMaxStates];

  explicit FullState(const std::vector<ParamSpec>& specs) {
    for (auto& state : values) {
      for (const ParamSpec& spec : specs) state.emplace_back(static_cast<std::size_t>(spec.numel()), NAN);
    }
  }

  std::vector<float>& array(StateId state, std::size_t param) { return values[static_cast<std::size_t>(state)][param]; }
  std::span<float> at(const StateRange& range) {
    return std::span(array(range.state, range.param))
        .subspan(static_cast<std::size_t>(range.elements.begin), static_cast<std::size_t>(range.elements.size()));
  }
  bool has(StateId state, std::size_t param) {
    return std::ranges::none_of(array(state, param), [](float value) { return std::isnan(value); });
  }

  /// The part of one rank. Ranks call it one after another.
  void save(const ZeroOptimizer& zero) {
    for (const StateRange& range : zero.state_ranges()) {
      zero.copy_state(range.state, range.param, range.elements.begin, at(range));
    }
  }
  /// Loads the rank's part of the states.
  void load(ZeroOptimizer& zero) {
    for (const StateRange& range : zero.state_ranges()) {
      if (has(range.state, range.param)) zero.load_state(range.state, range.param, range.elements.begin, at(range));
    }
  }
};

}  // namespace zerofleet::test
