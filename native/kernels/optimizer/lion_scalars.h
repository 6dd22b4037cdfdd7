#pragma once

namespace zerofleet {

/// The constants of one Lion step for one parameter group. Plain data without functions or includes, so that SIMD
/// and device sources may share it.
struct LionScalars {
  float grad_factor = 1;      // applied to every gradient element
  float one_minus_beta1 = 0;  // 1 - beta1
  float one_minus_beta2 = 0;  // 1 - beta2
  float decay_factor = 1;     // 1 - lr × weight_decay
  float lr = 0;
};

}  // namespace zerofleet
