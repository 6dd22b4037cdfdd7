#pragma once

#include <span>
#include <vector>

#include "core/system/cpu_isa.h"

namespace zerofleet {

/// Probabilities of tokens at a temperature above 0 but for a common factor: exp((logit − largest) / temperature).
/// logits: (V) on the host, V ≥ 1.
std::vector<float> draw_weights(CpuIsa isa, std::span<const float> logits, double temperature);

}  // namespace zerofleet
