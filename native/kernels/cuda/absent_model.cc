// The model's operations in a build without CUDA: each says that it is not there.
#include "core/cuda/cuda_runtime.h"
#include "kernels/cuda/model_launch.h"

namespace zerofleet::cuda {
namespace {

void refuse(const Context& context) { use(context.device); }  // throws in such a build

}  // namespace

void gemm(const Context& ctx, Scratch&, std::span<const GemmProblem>) { refuse(ctx); }
bool gemm_with_epilogue(const Context& ctx, Scratch&, const GemmProblem&) {
  refuse(ctx);
  return false;
}
void add_token_rows(const Context& ctx, const ExpertGroups&, std::span<std::int32_t>) { refuse(ctx); }
void add_router_load(const Context& ctx, const ExpertGroups&, std::span<const float>, const RouterSums&) { refuse(ctx); }
void attention(const Context& ctx, const AttentionForward&) { refuse(ctx); }
void attention_backward(const Context& ctx, const AttentionBackward&) { refuse(ctx); }
void bias_gradient(const Context& ctx, const ConstMatrix&, std::span<float>) { refuse(ctx); }
void cached_attention(const Context& ctx, const CachedAttention&) { refuse(ctx); }
void combine_rows_backward(const Context& ctx, const CombineBackward&) { refuse(ctx); }
void count_rows(const Context& ctx, std::span<const std::int32_t>, std::span<std::int32_t>) { refuse(ctx); }
void cross_entropy(const Context& ctx, const CrossEntropy&) { refuse(ctx); }
void dropout(const Context& ctx, const DropoutRule&, const ConstMatrix&, const Matrix&) { refuse(ctx); }
void embedding(const Context& ctx, const ConstMatrix&, const Indices&, const Matrix&) { refuse(ctx); }
void embedding_backward(const Context& ctx, const Indices&, const PositionGroups&, const ConstMatrix&, const Matrix&, bool) {
  refuse(ctx);
}
void gather_rows(const Context& ctx, const ExpertGroups&, const ConstMatrix&, const Matrix&) { refuse(ctx); }
void gelu(const Context& ctx, GeluKind, const ConstMatrix&, const Matrix&) { refuse(ctx); }
void gelu_backward(const Context& ctx, GeluKind, const ConstMatrix&, const ConstMatrix&, const Matrix&) { refuse(ctx); }
void group_by_expert(const Context& ctx, std::span<const std::int32_t>, std::int64_t, const DeviceGroups&) { refuse(ctx); }
void head_norm(const Context& ctx, const HeadNormForward&) { refuse(ctx); }
void head_norm_backward(const Context& ctx, const HeadNormBackward&) { refuse(ctx); }
void layernorm(const Context& ctx, const LayerNormForward&) { refuse(ctx); }
void layernorm_backward(const Context& ctx, const LayerNormBackward&) { refuse(ctx); }
void load_balancing_gradient(const Context& ctx, std::span<const std::int64_t>, double, double, std::span<float>) {
  refuse(ctx);
}
void order_rows(const Context& ctx, std::span<const std::int32_t>, const RowOrder&) { refuse(ctx); }
void pick_rows(const Context& ctx, const ConstMatrix&, std::span<const std::int32_t>, const Matrix&) { refuse(ctx); }
void rmsnorm(const Context& ctx, const RmsNormForward&) { refuse(ctx); }
void rmsnorm_backward(const Context& ctx, const RmsNormBackward&) { refuse(ctx); }
void rope(const Context& ctx, const Rope&) { refuse(ctx); }
void route(const Context& ctx, const RouterForward&) { refuse(ctx); }
void route_backward(const Context& ctx, const RouterBackward&) { refuse(ctx); }
void sum_rows(const Context& ctx, const ExpertGroups&, std::span<const float>, const ConstMatrix&, const Matrix&) {
  refuse(ctx);
}
void swiglu(const Context& ctx, const ConstMatrix&, const Matrix&) { refuse(ctx); }
void swiglu_backward(const Context& ctx, const ConstMatrix&, const ConstMatrix&, const Matrix&) { refuse(ctx); }

}  // namespace zerofleet::cuda
