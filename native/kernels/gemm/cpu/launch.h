#pragma once

#include <span>

#include "core/device/context.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/packed_matrix.h"

// CPU launchers of this family. The entries in kernels/gemm/ have checked the arguments.
namespace zerofleet::cpu {

void pack(const Context& ctx, std::span<const PackRequest> requests);
void gemm(const Context& ctx, Scratch& scratch, std::span<const GemmProblem> problems);

}  // namespace zerofleet::cpu
