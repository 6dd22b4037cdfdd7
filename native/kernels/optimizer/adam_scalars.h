#pragma once

namespace zerofleet {

/// The constants of one Adam step for one parameter group, with the bias corrections already in them. Plain data
/// without functions or includes, so that SIMD and device sources may share it.
struct AdamScalars {
  float grad_factor = 1;           // applied to every gradient element
  float weight_decay = 0;          // L2: weight_decay × master is added to the gradient
  float one_minus_beta1 = 0;       // 1 - beta1
  float beta2 = 0;
  float one_minus_beta2 = 0;       // 1 - beta2
  float eps = 0;                   // > 0
  float step_size = 0;             // lr / (1 - beta1^step)
  float inv_sqrt_correction2 = 1;  // 1 / sqrt(1 - beta2^step)
};

}  // namespace zerofleet
