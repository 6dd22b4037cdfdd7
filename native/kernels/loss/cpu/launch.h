#pragma once

#include "core/device/context.h"
#include "kernels/loss/cross_entropy.h"

// The CPU's launchers of this family; arguments were checked by the entries in kernels/loss/.
namespace zerofleet::cpu {

void cross_entropy(const Context& ctx, const CrossEntropy& args);

}  // namespace zerofleet::cpu
