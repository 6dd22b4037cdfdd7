#pragma once

#include "core/host_device.h"

// Formulas of element-wise operations stand once, as templates over an arithmetic M: VectorArithmetic of each
// instruction-set path (kernels/common/simd/arithmetic.h) and FloatArithmetic of devices and the host
// (kernels/common/cuda/arithmetic.h). M::Value is a number or a vector of numbers, with C++'s operators, also between a
// Value and a float. M also has:
// - set(x): the Value that is x everywhere
// - select(mask, yes, no): by the result of a comparison of Values
// - min, max (b where either is NaN), abs, fma, sqrt, exp
// - flushed(x): 0 where |x| < 2^-126, else x
//
// Operations are written in the order in which they are done, and are never fused but by fma(). All but exp() and fma()
// are rounded correctly: what consists of them has equal bits with every M.
namespace zerofleet {

/// 1 / (1 + e^-x)
template <class M>
ZF_FORMULA typename M::Value sigmoid(typename M::Value x) {
  return 1.0F / (1.0F + M::exp(-x));
}

}  // namespace zerofleet
