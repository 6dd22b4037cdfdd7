#pragma once

#include "core/device/context.h"
#include "kernels/common/matrix.h"
#include "kernels/quantize/formulas/blocks.h"

// The CUDA launchers of this family; arguments were checked by the entries in kernels/quantize/.
namespace zerofleet::cuda {

void quantize(const Context& ctx, const ConstMatrix& source, const QuantBlocks& target);
void dequantize(const Context& ctx, const ConstQuantBlocks& source, const Matrix& target);

}  // namespace zerofleet::cuda
