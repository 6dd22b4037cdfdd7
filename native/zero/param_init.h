#pragma once

#include <cstdint>
#include <span>

#include "core/param_spec.h"

namespace zerofleet {

/// Fresh values of elements [begin, begin + values.size()) of parameter number `param`: ones, or normal numbers with
/// the spec's standard deviation. An element's value depends on (seed, param, element) alone, so that every owner can draw
/// its own; only correctly rounded operations are used, so it does not depend on the C library either.
void init_param(const ParamSpec& spec, std::uint64_t seed, std::size_t param, std::int64_t begin,
                std::span<float> values);

}  // namespace zerofleet
