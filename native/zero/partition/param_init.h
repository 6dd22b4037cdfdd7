#pragma once

#include <cstdint>
#include <span>

#include "core/param_spec.h"

namespace zerofleet {

/// Fresh values of elements [begin, begin + values.size()) of parameter number `param`: ones, zeros, or normal or uniform numbers of
/// the spec's scale. An element's value depends on (seed, param, element) alone, so that every owner can draw
/// its own. Computed by core/portable_math.h: the same bits on every machine.
void init_param(const ParamSpec& spec, std::uint64_t seed, std::size_t param, std::int64_t begin,
                std::span<float> values);

}  // namespace zerofleet
