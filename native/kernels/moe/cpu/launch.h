#pragma once

#include <cstdint>
#include <span>

#include "core/device/context.h"
#include "kernels/moe/moe.h"
#include "kernels/moe/moe_router.h"

// The CPU's launchers of this family; arguments were checked by the entries in kernels/moe/.
namespace zerofleet::cpu {

void route(const Context& ctx, const RouterForward& args);
void route_backward(const Context& ctx, const RouterBackward& args);
void add_router_load(const Context& ctx, const RouterChoices& chosen, const RouterSums& sums);
void load_balancing_gradient(const Context& ctx, std::span<const std::int64_t> choices, double num_tokens, double scale,
                             std::span<float> gradient);
void gather_rows(const Context& ctx, const ExpertGroups& groups, const ConstMatrix& x, const Matrix& rows);
/// y[m] = Σ of weight · row over the rows of token m; without weights they are 1.
void sum_rows(const Context& ctx, const ExpertGroups& groups, std::span<const float> weights, const ConstMatrix& rows,
              const Matrix& y);
void combine_rows_backward(const Context& ctx, const CombineBackward& args);

}  // namespace zerofleet::cpu
