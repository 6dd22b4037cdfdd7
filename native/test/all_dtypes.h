#pragma once

#include "core/dtype.h"

namespace zerofleet::test {

inline constexpr DType kAllDTypes[] = {DType::kF32, DType::kBF16, DType::kF16};

}  // namespace zerofleet::test
