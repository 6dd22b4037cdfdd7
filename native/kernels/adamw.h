#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/context.h"
#include "core/dtype.h"
#include "kernels/adamw_scalars.h"

namespace zerofleet {

/// Arrays of one run of elements, each (numel). `params` has the compute dtype and need not be read before.
struct AdamWSegment {
  float* master = nullptr;
  float* exp_avg = nullptr;
  float* exp_avg_sq = nullptr;
  const float* grad = nullptr;
  std::byte* params = nullptr;
  std::int64_t numel = 0;
  bool decay = true;
};

/// In one pass over memory, for every element:
///   g = grad × grad_factor;  m += (g - m)(1 - beta1);  v = v × beta2 + g × g × (1 - beta2)
///   master = master × decay_factor - step_size × m / (sqrt(v) × inv_sqrt_correction2 + eps);  params = round(master)
/// Only correctly rounded operations in a fixed order and no fused ones: every instruction-set path gives equal bits.
/// Throws Error{"invalid_argument"} for eps <= 0 or a negative numel.
void adamw(const Context& context, std::span<const AdamWSegment> segments, DType param_dtype,
           const AdamWScalars& scalars);

}  // namespace zerofleet
