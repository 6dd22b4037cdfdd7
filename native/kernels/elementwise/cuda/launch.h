#pragma once

#include <span>

#include "core/device/context.h"
#include "kernels/elementwise/bias.h"
#include "kernels/elementwise/dropout.h"
#include "kernels/elementwise/gelu.h"
#include "kernels/elementwise/swiglu.h"

// The CUDA launchers of this family; arguments were checked by the entries in kernels/elementwise/.
namespace zerofleet::cuda {

void gelu(const Context& ctx, GeluKind kind, const ConstMatrix& x, const Matrix& y);
void gelu_backward(const Context& ctx, GeluKind kind, const ConstMatrix& x, const ConstMatrix& dy, const Matrix& dx);
void swiglu(const Context& ctx, const ConstMatrix& gate_up, const Matrix& act);
void swiglu_backward(const Context& ctx, const ConstMatrix& gate_up, const ConstMatrix& dact, const Matrix& dgate_up);
void bias_gradient(const Context& ctx, const ConstMatrix& dy, std::span<float> dbias);
void dropout(const Context& ctx, const DropoutRule& rule, const ConstMatrix& x, const Matrix& y);

}  // namespace zerofleet::cuda
