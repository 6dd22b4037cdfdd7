#pragma once

#include <span>

#include "core/device/context.h"
#include "kernels/gemm/gemm.h"

// The CUDA launchers of this family; arguments were checked by the entries in kernels/gemm/.
namespace zerofleet::cuda {

void pack(const Context& ctx, std::span<const PackRequest> requests);
void gemm(const Context& ctx, Scratch& scratch, std::span<const GemmProblem> problems);
/// A problem with an epilogue, in one product; does nothing and returns false where no library takes it.
bool gemm_with_epilogue(const Context& ctx, Scratch& scratch, const GemmProblem& problem);

}  // namespace zerofleet::cuda
