#pragma once

namespace zerofleet::test {

/// Products of a linear layer.
enum class Way { kForward, kInputGradient, kWeightGradient };
inline constexpr Way kWays[] = {Way::kForward, Way::kInputGradient, Way::kWeightGradient};

}  // namespace zerofleet::test
