#pragma once

#include <cstdint>
#include <span>

#include "core/device/context.h"
#include "kernels/moe/moe.h"
#include "kernels/moe/moe_router.h"
#include "kernels/moe/row_order.h"

// The CUDA launchers of this family; arguments were checked by the entries in kernels/moe/.
namespace zerofleet::cuda {

void route(const Context& ctx, const RouterForward& args);
void route_backward(const Context& ctx, const RouterBackward& args);
void add_router_load(const Context& ctx, const RouterChoices& chosen, const RouterSums& sums);
void load_balancing_gradient(const Context& ctx, std::span<const std::int64_t> choices, double num_tokens, double scale,
                             std::span<float> gradient);
void group_by_expert(const Context& ctx, std::span<const std::int32_t> experts, std::int64_t experts_per_token,
                     const DeviceGroups& groups);
/// all: (M, k + 1), the rows of each token and then its own, behind those of all pairs.
void add_token_rows(const Context& ctx, const ExpertGroups& groups, std::span<std::int32_t> all);
void gather_rows(const Context& ctx, const ExpertGroups& groups, const ConstMatrix& x, const Matrix& rows);
/// y[m] = Σ of weight · row over the rows of token m; without weights they are 1.
void sum_rows(const Context& ctx, const ExpertGroups& groups, std::span<const float> weights, const ConstMatrix& rows,
              const Matrix& y);
void combine_rows_backward(const Context& ctx, const CombineBackward& args);
void count_rows(const Context& ctx, std::span<const std::int32_t> first, std::span<std::int32_t> counts);
void order_rows(const Context& ctx, std::span<const std::int32_t> counts, const RowOrder& order);
void pick_rows(const Context& ctx, const ConstMatrix& source, std::span<const std::int32_t> numbers, const Matrix& target);

}  // namespace zerofleet::cuda
