#pragma once

#include "core/device/context.h"
#include "kernels/loss/cross_entropy.h"

// The CUDA launchers of this family; arguments were checked by the entries in kernels/loss/.
namespace zerofleet::cuda {

void cross_entropy(const Context& ctx, const CrossEntropy& args);

}  // namespace zerofleet::cuda
