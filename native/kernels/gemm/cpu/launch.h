#pragma once

#include <span>

#include "core/device/context.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/packed_matrix.h"

// The CPU's launchers of this family; arguments were checked by the entries in kernels/gemm/.
namespace zerofleet::cpu {

void pack(const Context& ctx, std::span<const PackRequest> requests);
void gemm(const Context& ctx, Scratch& scratch, std::span<const GemmProblem> problems);

}  // namespace zerofleet::cpu
