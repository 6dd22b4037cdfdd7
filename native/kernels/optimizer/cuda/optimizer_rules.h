#pragma once

#include <cmath>

#include "core/host_device.h"
#include "kernels/optimizer/adagrad_scalars.h"
#include "kernels/optimizer/adam_scalars.h"
#include "kernels/optimizer/adamw_scalars.h"
#include "kernels/optimizer/lamb_scalars.h"
#include "kernels/optimizer/lion_scalars.h"
#include "kernels/optimizer/sgd_scalars.h"

// The arithmetic of the optimizers for one element, operation by operation that of kernels/optimizer/simd; the formulas
// stand in kernels/optimizer/adamw.h and its neighbours.
namespace zerofleet::cuda {

/// One element of all arrays.
struct Element {
  float master;
  float states[2];
  float grad;
};

/// Zero for subnormal numbers, which states do not hold (kernels/optimizer/optimizer_segment.h).
ZF_HOST_DEVICE inline float flushed(float x) { return fabsf(x) < 0x1p-126F ? 0.0F : x; }

// Every rule has: Scalars; kNumStates, states that it reads; kReadsGrad; kWritesStates; apply().

struct AdamWRule {
  using Scalars = AdamWScalars;
  static constexpr int kNumStates = 2;
  static constexpr bool kReadsGrad = true, kWritesStates = true;

  ZF_HOST_DEVICE static void apply(Element& e, const Scalars& k) {
    const float g = e.grad * k.grad_factor;
    const float m = flushed(e.states[0] + (g - e.states[0]) * k.one_minus_beta1);
    const float v = flushed(e.states[1] * k.beta2 + g * g * k.one_minus_beta2);
    const float denominator = sqrtf(v) * k.inv_sqrt_correction2 + k.eps;
    e.master = e.master * k.decay_factor - k.step_size * m / denominator;
    e.states[0] = m;
    e.states[1] = v;
  }
};

struct AdamRule {
  using Scalars = AdamScalars;
  static constexpr int kNumStates = 2;
  static constexpr bool kReadsGrad = true, kWritesStates = true;

  ZF_HOST_DEVICE static void apply(Element& e, const Scalars& k) {
    const float g = e.grad * k.grad_factor + e.master * k.weight_decay;
    const float m = flushed(e.states[0] + (g - e.states[0]) * k.one_minus_beta1);
    const float v = flushed(e.states[1] * k.beta2 + g * g * k.one_minus_beta2);
    const float denominator = sqrtf(v) * k.inv_sqrt_correction2 + k.eps;
    e.master = e.master - k.step_size * m / denominator;
    e.states[0] = m;
    e.states[1] = v;
  }
};

/// The moments of LAMB's first pass. The master stays.
ZF_HOST_DEVICE inline void move_lamb_moments(Element& e, const LambScalars& k) {
  const float g = e.grad * k.grad_factor;
  e.states[0] = flushed(e.states[0] + (g - e.states[0]) * k.one_minus_beta1);
  e.states[1] = flushed(e.states[1] * k.beta2 + g * g * k.one_minus_beta2);
}

ZF_HOST_DEVICE inline float raw_lamb_update(const Element& e, const LambScalars& k) {
  const float denominator = sqrtf(e.states[1]) * k.inv_sqrt_correction2 + k.eps;
  return (e.states[0] * k.inv_correction1) / denominator + e.master * k.weight_decay;
}

/// LAMB's second pass. Its scalars carry the step size, lr × trust ratio, in place of lr.
struct LambUpdateRule {
  using Scalars = LambScalars;
  static constexpr int kNumStates = 2;
  static constexpr bool kReadsGrad = false, kWritesStates = false;

  ZF_HOST_DEVICE static void apply(Element& e, const Scalars& k) {
    e.master = e.master - k.lr * raw_lamb_update(e, k);
  }
};

struct LionRule {
  using Scalars = LionScalars;
  static constexpr int kNumStates = 1;
  static constexpr bool kReadsGrad = true, kWritesStates = true;

  ZF_HOST_DEVICE static void apply(Element& e, const Scalars& k) {
    const float m = e.states[0];
    const float g = e.grad * k.grad_factor;
    const float c = m + (g - m) * k.one_minus_beta1;
    e.states[0] = flushed(m + (g - m) * k.one_minus_beta2);
    const float change = c > 0 ? k.lr : c < 0 ? -k.lr : 0.0F;
    e.master = e.master * k.decay_factor - change;
  }
};

struct AdagradRule {
  using Scalars = AdagradScalars;
  static constexpr int kNumStates = 1;
  static constexpr bool kReadsGrad = true, kWritesStates = true;

  ZF_HOST_DEVICE static void apply(Element& e, const Scalars& k) {
    const float g = e.grad * k.grad_factor + e.master * k.weight_decay;
    const float sum = flushed(e.states[0] + g * g);
    e.states[0] = sum;
    e.master = e.master - k.step_size * g / (sqrtf(sum) + k.eps);
  }
};

/// For segments whose group has no momentum.
struct SgdRule {
  using Scalars = SgdScalars;
  static constexpr int kNumStates = 0;
  static constexpr bool kReadsGrad = true, kWritesStates = true;

  ZF_HOST_DEVICE static void apply(Element& e, const Scalars& k) {
    e.master = e.master - k.lr * (e.grad * k.grad_factor + e.master * k.weight_decay);
  }
};

struct SgdMomentumRule {
  using Scalars = SgdScalars;
  static constexpr int kNumStates = 1;
  static constexpr bool kReadsGrad = true, kWritesStates = true;

  ZF_HOST_DEVICE static void apply(Element& e, const Scalars& k) {
    const float g = e.grad * k.grad_factor + e.master * k.weight_decay;
    const float buffer = flushed(e.states[0] * k.momentum + g * k.one_minus_dampening);
    e.states[0] = buffer;
    e.master = e.master - k.lr * (k.nesterov ? g + buffer * k.momentum : buffer);
  }
};

}  // namespace zerofleet::cuda
