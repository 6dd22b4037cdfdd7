#pragma once

#include <cstdint>
#include <span>

#include "core/param_spec.h"

namespace zerofleet {

/// Sets elements [begin, begin + values.size()) of parameter `param` to initial values: ones, zeros, or normal or
/// uniform random numbers of the spec's scale. A value depends on (seed, param, element) alone, so every owner computes
/// its own. core/portable_math.h gives the same bits on every machine.
void init_param(const ParamSpec& spec, std::uint64_t seed, std::size_t param, std::int64_t begin,
                std::span<float> values);

}  // namespace zerofleet
