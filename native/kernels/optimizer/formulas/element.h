#pragma once

#include "core/host_device.h"

namespace zerofleet {

/// An element of all arrays of an optimizer, or a vector of elements.
template <class M>
struct Element {
  typename M::Value master = {};
  typename M::Value states[2] = {};
  typename M::Value grad = {};
};

/// Base of an update, which has: Scalars, plain data, the constants of one step for one parameter group;
/// apply<M>(element, scalars), which moves master and states; and this. Only correctly rounded operations in a fixed
/// order and no fused ones: every arithmetic gives equal bits.
template <int kStates>
struct ElementUpdate {
  static constexpr int kNumStates = kStates;  // that it reads
  static constexpr bool kReadsGrad = true;
  static constexpr bool kWritesStates = true;
};

/// The moments m and v of Adam and its relatives, in states[0] and states[1]:
///   m = flushed(m + (g - m)(1 - beta1));  v = flushed(v × beta2 + g × g × (1 - beta2))
template <class M, class Scalars>
ZF_FORMULA void move_moments(Element<M>& e, typename M::Value g, const Scalars& k) {
  e.states[0] = M::flushed(e.states[0] + (g - e.states[0]) * k.one_minus_beta1);
  e.states[1] = M::flushed(e.states[1] * k.beta2 + g * g * k.one_minus_beta2);
}

}  // namespace zerofleet
