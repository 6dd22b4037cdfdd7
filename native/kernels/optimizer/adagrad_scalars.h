#pragma once

namespace zerofleet {

/// The constants of one Adagrad step for one parameter group. Plain data without functions or includes, so that
/// SIMD and device sources may share it.
struct AdagradScalars {
  float grad_factor = 1;   // applied to every gradient element
  float weight_decay = 0;  // L2: weight_decay × master is added to the gradient
  float eps = 0;           // > 0
  float step_size = 0;     // lr / (1 + (step - 1) × lr_decay)
};

}  // namespace zerofleet
