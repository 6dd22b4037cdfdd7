#pragma once

#include <span>

#include "core/context.h"
#include "kernels/attention.h"
#include "kernels/bias.h"
#include "kernels/cached_attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "kernels/embedding.h"
#include "kernels/gelu.h"
#include "kernels/gemm.h"
#include "kernels/head_norm.h"
#include "kernels/layernorm.h"
#include "kernels/moe.h"
#include "kernels/moe_router.h"
#include "kernels/rmsnorm.h"
#include "kernels/rope.h"
#include "kernels/row_order.h"
#include "kernels/swiglu.h"

// CUDA backends of the model's operations; arguments are checked by the entries in kernels/. Matrices and spans lie in
// memory of the context's device, Indices there as well as on the host. A call queues its work in the context's stream.
// Results depend on the arguments and the kind of device alone: work is cut by shapes, sums have one order, nothing is
// added atomically. Errors: as core/cuda/cuda_runtime.h says; a build without CUDA has Error{"device_unavailable"} for
// all of them.
namespace zerofleet::cuda {

void gemm(const Context& ctx, Scratch& scratch, std::span<const GemmProblem> problems);
/// A problem with an epilogue, in one product; does nothing and returns false where no library takes it.
bool gemm_with_epilogue(const Context& ctx, Scratch& scratch, const GemmProblem& problem);
/// all: (M, k + 1), the rows of each token and then its own, behind those of all pairs.
void add_token_rows(const Context& ctx, const ExpertGroups& groups, std::span<std::int32_t> all);
void add_router_load(const Context& ctx, const RouterChoices& chosen, const RouterSums& sums);
void attention(const Context& ctx, const AttentionForward& args);
void attention_backward(const Context& ctx, const AttentionBackward& args);
void bias_gradient(const Context& ctx, const ConstMatrix& dy, std::span<float> dbias);
void cached_attention(const Context& ctx, const CachedAttention& args);
void combine_rows_backward(const Context& ctx, const CombineBackward& args);
void count_rows(const Context& ctx, std::span<const std::int32_t> first, std::span<std::int32_t> counts);
void cross_entropy(const Context& ctx, const CrossEntropy& args);
void dropout(const Context& ctx, const DropoutRule& rule, const ConstMatrix& x, const Matrix& y);
void embedding(const Context& ctx, const ConstMatrix& table, const Indices& tokens, const Matrix& rows);
void embedding_backward(const Context& ctx, const Indices& tokens, const PositionGroups& groups, const ConstMatrix& drows,
                        const Matrix& dtable, bool accumulate);
void gather_rows(const Context& ctx, const ExpertGroups& groups, const ConstMatrix& x, const Matrix& rows);
void gelu(const Context& ctx, GeluKind kind, const ConstMatrix& x, const Matrix& y);
void gelu_backward(const Context& ctx, GeluKind kind, const ConstMatrix& x, const ConstMatrix& dy, const Matrix& dx);
void group_by_expert(const Context& ctx, std::span<const std::int32_t> experts, std::int64_t experts_per_token,
                     const DeviceGroups& groups);
void head_norm(const Context& ctx, const HeadNormForward& args);
void head_norm_backward(const Context& ctx, const HeadNormBackward& args);
void layernorm(const Context& ctx, const LayerNormForward& args);
void layernorm_backward(const Context& ctx, const LayerNormBackward& args);
void load_balancing_gradient(const Context& ctx, std::span<const std::int64_t> choices, double num_tokens, double scale,
                             std::span<float> gradient);
void order_rows(const Context& ctx, std::span<const std::int32_t> counts, const RowOrder& order);
void pick_rows(const Context& ctx, const ConstMatrix& source, std::span<const std::int32_t> numbers, const Matrix& target);
void rmsnorm(const Context& ctx, const RmsNormForward& args);
void rmsnorm_backward(const Context& ctx, const RmsNormBackward& args);
void rope(const Context& ctx, const Rope& args);
void route(const Context& ctx, const RouterForward& args);
void route_backward(const Context& ctx, const RouterBackward& args);
/// y[m] = Σ of weight · row over the rows of token m; without weights they are 1.
void sum_rows(const Context& ctx, const ExpertGroups& groups, std::span<const float> weights, const ConstMatrix& rows,
              const Matrix& y);
void swiglu(const Context& ctx, const ConstMatrix& gate_up, const Matrix& act);
void swiglu_backward(const Context& ctx, const ConstMatrix& gate_up, const ConstMatrix& dact, const Matrix& dgate_up);

}  // namespace zerofleet::cuda
