// The model's operations in a build without CUDA: use() throws there.
#include "core/cuda/cuda_runtime.h"
#include "kernels/attention/cuda/launch.h"
#include "kernels/elementwise/cuda/launch.h"
#include "kernels/embedding/cuda/launch.h"
#include "kernels/gemm/cuda/launch.h"
#include "kernels/loss/cuda/launch.h"
#include "kernels/moe/cuda/launch.h"
#include "kernels/norm/cuda/launch.h"

namespace zerofleet::cuda {
void gemm(const Context& ctx, Scratch&, std::span<const GemmProblem>) { use(ctx.device); }
bool gemm_with_epilogue(const Context& ctx, Scratch&, const GemmProblem&) {
  use(ctx.device);
  return false;
}
void add_token_rows(const Context& ctx, const ExpertGroups&, std::span<std::int32_t>) { use(ctx.device); }
void add_router_load(const Context& ctx, const RouterChoices&, const RouterSums&) { use(ctx.device); }
void attention(const Context& ctx, const AttentionForward&) { use(ctx.device); }
void attention_backward(const Context& ctx, const AttentionBackward&) { use(ctx.device); }
void bias_gradient(const Context& ctx, const ConstMatrix&, std::span<float>) { use(ctx.device); }
void cached_attention(const Context& ctx, const CachedAttention&) { use(ctx.device); }
void combine_rows_backward(const Context& ctx, const CombineBackward&) { use(ctx.device); }
void count_rows(const Context& ctx, std::span<const std::int32_t>, std::span<std::int32_t>) { use(ctx.device); }
void cross_entropy(const Context& ctx, const CrossEntropy&) { use(ctx.device); }
void dropout(const Context& ctx, const DropoutRule&, const ConstMatrix&, const Matrix&) { use(ctx.device); }
void embedding(const Context& ctx, const ConstMatrix&, const Indices&, const Matrix&) { use(ctx.device); }
void embedding_backward(const Context& ctx, const Indices&, const PositionGroups&, const ConstMatrix&, const Matrix&, bool) {
  use(ctx.device);
}
void gather_rows(const Context& ctx, const ExpertGroups&, const ConstMatrix&, const Matrix&) { use(ctx.device); }
void gelu(const Context& ctx, GeluKind, const ConstMatrix&, const Matrix&) { use(ctx.device); }
void gelu_backward(const Context& ctx, GeluKind, const ConstMatrix&, const ConstMatrix&, const Matrix&) {
  use(ctx.device);
}
void group_by_expert(const Context& ctx, std::span<const std::int32_t>, std::int64_t, const DeviceGroups&) {
  use(ctx.device);
}
void head_norm(const Context& ctx, const HeadNormForward&) { use(ctx.device); }
void head_norm_backward(const Context& ctx, const HeadNormBackward&) { use(ctx.device); }
void layernorm(const Context& ctx, const LayerNormForward&) { use(ctx.device); }
void layernorm_backward(const Context& ctx, const LayerNormBackward&) { use(ctx.device); }
void load_balancing_gradient(const Context& ctx, std::span<const std::int64_t>, double, double, std::span<float>) {
  use(ctx.device);
}
void order_rows(const Context& ctx, std::span<const std::int32_t>, const RowOrder&) { use(ctx.device); }
void pick_rows(const Context& ctx, const ConstMatrix&, std::span<const std::int32_t>, const Matrix&) {
  use(ctx.device);
}
void rmsnorm(const Context& ctx, const RmsNormForward&) { use(ctx.device); }
void rmsnorm_backward(const Context& ctx, const RmsNormBackward&) { use(ctx.device); }
void rope(const Context& ctx, const Rope&) { use(ctx.device); }
void route(const Context& ctx, const RouterForward&) { use(ctx.device); }
void route_backward(const Context& ctx, const RouterBackward&) { use(ctx.device); }
void sum_rows(const Context& ctx, const ExpertGroups&, std::span<const float>, const ConstMatrix&, const Matrix&) {
  use(ctx.device);
}
void swiglu(const Context& ctx, const ConstMatrix&, const Matrix&) { use(ctx.device); }
void swiglu_backward(const Context& ctx, const ConstMatrix&, const ConstMatrix&, const Matrix&) { use(ctx.device); }

}  // namespace zerofleet::cuda
