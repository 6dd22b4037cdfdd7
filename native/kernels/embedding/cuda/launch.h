#pragma once

#include "core/device/context.h"
#include "kernels/embedding/embedding.h"

// The CUDA launchers of this family; arguments were checked by the entries in kernels/embedding/.
namespace zerofleet::cuda {

void embedding(const Context& ctx, const ConstMatrix& table, const Indices& tokens, const Matrix& rows);
void embedding_backward(const Context& ctx, const Indices& tokens, const PositionGroups& groups, const ConstMatrix& drows,
                        const Matrix& dtable, bool accumulate);

}  // namespace zerofleet::cuda
