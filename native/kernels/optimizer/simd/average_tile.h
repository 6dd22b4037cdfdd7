#pragma once

#include <stdint.h>

#include "kernels/common/simd/declare.h"

namespace zerofleet::cpu {

/// Moves averages (numel) towards the master (numel) by moved_average().
ZF_DECLARE_KERNEL(void average_tile(const float* master, float* average, float weight, int64_t numel))

}  // namespace zerofleet::cpu
