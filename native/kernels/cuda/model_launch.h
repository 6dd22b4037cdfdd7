#pragma once

#include <span>

#include "core/context.h"
#include "kernels/attention.h"
#include "kernels/gemm.h"
#include "kernels/rmsnorm.h"

// CUDA backends of the model's operations; arguments are checked by the entries in kernels/. Matrices and spans lie in
// memory of the context's device, Indices there as well as on the host. A call queues its work in the context's stream.
// Results depend on the arguments and the kind of device alone: work is cut by shapes, sums have one order, nothing is
// added atomically. Errors: as core/cuda/cuda_runtime.h says; a build without CUDA has Error{"device_unavailable"} for all
// of them.
namespace zerofleet::cuda {

void gemm(const Context& ctx, Scratch& scratch, std::span<const GemmProblem> problems);
void attention(const Context& ctx, const AttentionForward& args);
void attention_backward(const Context& ctx, const AttentionBackward& args);
void rmsnorm(const Context& ctx, const RmsNormForward& args);
void rmsnorm_backward(const Context& ctx, const RmsNormBackward& args);

}  // namespace zerofleet::cuda
