#pragma once

#include "core/device/context.h"
#include "kernels/adapter/magnitude.h"

// The CPU launchers of this family; arguments were checked by the entries in kernels/adapter/.
namespace zerofleet::cpu {

void direction_norms(const Context& ctx, const DirectionNorms& args);
void scale_columns(const Context& ctx, const ColumnScaling& args);
void magnitude_gradient(const Context& ctx, const MagnitudeGradient& args);

}  // namespace zerofleet::cpu
