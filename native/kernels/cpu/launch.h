#pragma once

#include <algorithm>
#include <cstdint>
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
#include "kernels/packed_matrix.h"
#include "kernels/rmsnorm.h"
#include "kernels/rope.h"
#include "kernels/swiglu.h"

// The CPU backend's launchers of the model's operations: they cut the work into tasks that depend on shapes only and
// run the inner loops of kernels/cpu/simd. Arguments were checked by the entries in kernels/.
namespace zerofleet::cpu {

void pack(const Context& ctx, std::span<const PackRequest> requests);
void gemm(const Context& ctx, Scratch& scratch, std::span<const GemmProblem> problems);
void rmsnorm(const Context& ctx, const RmsNormForward& args);
void rmsnorm_backward(const Context& ctx, const RmsNormBackward& args);
void bias_gradient(const Context& ctx, const ConstMatrix& dy, std::span<float> dbias);
void gelu(const Context& ctx, GeluKind kind, const ConstMatrix& x, const Matrix& y);
void gelu_backward(const Context& ctx, GeluKind kind, const ConstMatrix& x, const ConstMatrix& dy, const Matrix& dx);
void head_norm(const Context& ctx, const HeadNormForward& args);
void head_norm_backward(const Context& ctx, const HeadNormBackward& args);
void dropout(const Context& ctx, const DropoutRule& rule, const ConstMatrix& x, const Matrix& y);
void layernorm(const Context& ctx, const LayerNormForward& args);
void layernorm_backward(const Context& ctx, const LayerNormBackward& args);
void rope(const Context& ctx, const Rope& args);
void swiglu(const Context& ctx, const ConstMatrix& gate_up, const Matrix& act);
void swiglu_backward(const Context& ctx, const ConstMatrix& gate_up, const ConstMatrix& dact, const Matrix& dgate_up);
void cross_entropy(const Context& ctx, const CrossEntropy& args);
void embedding(const Context& ctx, const ConstMatrix& table, const Indices& tokens, const Matrix& rows);
void embedding_backward(const Context& ctx, const Indices& tokens, const ConstMatrix& drows,
                        const Matrix& dtable, bool accumulate);
void attention(const Context& ctx, Scratch& scratch, const AttentionForward& args);
void attention_backward(const Context& ctx, Scratch& scratch, const AttentionBackward& args);
void route(const Context& ctx, const RouterForward& args);
void route_backward(const Context& ctx, const RouterBackward& args);
void gather_rows(const Context& ctx, const ExpertGroups& groups, const ConstMatrix& x, const Matrix& rows);
/// y[m] = Σ of weight · row over the rows of token m; without weights they are 1.
void sum_rows(const Context& ctx, const ExpertGroups& groups, std::span<const float> weights, const ConstMatrix& rows,
              const Matrix& y);
void combine_rows_backward(const Context& ctx, const CombineBackward& args);
void cached_attention(const Context& ctx, Scratch& scratch, const CachedAttention& args);

/// Rows per task of operations that treat rows alike.
constexpr std::int64_t kRowChunk = 64;

inline std::int64_t num_row_chunks(std::int64_t rows) { return (rows + kRowChunk - 1) / kRowChunk; }

/// Calls body(first_row, num_rows) for each chunk of rows, in parallel.
template <class Body>
void for_row_chunks(const Context& ctx, std::int64_t rows, const Body& body) {
  ctx.pool->parallel_for(num_row_chunks(rows), [&](std::int64_t chunk, int) {
    body(chunk * kRowChunk, std::min(kRowChunk, rows - chunk * kRowChunk));
  });
}

}  // namespace zerofleet::cpu
