#pragma once

namespace zerofleet {

/// The constants of one LAMB step for one parameter group, with the bias corrections already in them. Plain data
/// without functions or includes, so that SIMD and device sources may share it.
struct LambScalars {
  float grad_factor = 1;           // applied to every gradient element
  float one_minus_beta1 = 0;       // 1 - beta1
  float beta2 = 0;
  float one_minus_beta2 = 0;       // 1 - beta2
  float eps = 0;                   // > 0
  float weight_decay = 0;          // inside the update, so the trust ratio scales it too
  float inv_correction1 = 1;       // 1 / (1 - beta1^step), or 1 where the update is not corrected
  float inv_sqrt_correction2 = 1;  // 1 / sqrt(1 - beta2^step), or 1
  float lr = 0;
};

}  // namespace zerofleet
