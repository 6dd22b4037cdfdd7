#pragma once

#include "core/device/context.h"
#include "kernels/norm/head_norm.h"
#include "kernels/norm/layernorm.h"
#include "kernels/norm/rmsnorm.h"

// The CUDA launchers of this family; arguments were checked by the entries in kernels/norm/.
namespace zerofleet::cuda {

void rmsnorm(const Context& ctx, const RmsNormForward& args);
void rmsnorm_backward(const Context& ctx, const RmsNormBackward& args);
void layernorm(const Context& ctx, const LayerNormForward& args);
void layernorm_backward(const Context& ctx, const LayerNormBackward& args);
void head_norm(const Context& ctx, const HeadNormForward& args);
void head_norm_backward(const Context& ctx, const HeadNormBackward& args);

}  // namespace zerofleet::cuda
