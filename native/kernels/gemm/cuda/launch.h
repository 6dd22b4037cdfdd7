#pragma once

#include <span>

#include "core/device/context.h"
#include "kernels/gemm/gemm.h"

// CUDA launchers of this family. The entries in kernels/gemm/ have checked the arguments.
namespace zerofleet::cuda {

void pack(const Context& ctx, std::span<const PackRequest> requests);
void gemm(const Context& ctx, Scratch& scratch, std::span<const GemmProblem> problems);
/// Computes a problem with an epilogue in one product. Returns false, without effect, if no library supports it.
bool gemm_with_epilogue(const Context& ctx, Scratch& scratch, const GemmProblem& problem);

}  // namespace zerofleet::cuda
