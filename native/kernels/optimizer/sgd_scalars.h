#pragma once

namespace zerofleet {

/// The constants of one SGD step for one parameter group. Plain data without functions or includes, so that SIMD
/// and device sources may share it.
struct SgdScalars {
  float grad_factor = 1;          // applied to every gradient element
  float weight_decay = 0;         // L2: weight_decay × master is added to the gradient
  float lr = 0;
  float momentum = 0;             // 0: there is no momentum buffer
  float one_minus_dampening = 1;  // 1 in the first step, whatever the dampening
  bool nesterov = false;
};

}  // namespace zerofleet
