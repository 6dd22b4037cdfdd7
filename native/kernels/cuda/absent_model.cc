// The model's operations in a build without CUDA: each says that it is not there.
#include "core/cuda/cuda_runtime.h"
#include "kernels/cuda/model_launch.h"

namespace zerofleet::cuda {
namespace {

void refuse(const Context& context) { use(context.device); }  // throws in such a build

}  // namespace

void gemm(const Context& ctx, Scratch&, std::span<const GemmProblem>) { refuse(ctx); }
void attention(const Context& ctx, const AttentionForward&) { refuse(ctx); }
void attention_backward(const Context& ctx, const AttentionBackward&) { refuse(ctx); }
void rmsnorm(const Context& ctx, const RmsNormForward&) { refuse(ctx); }
void rmsnorm_backward(const Context& ctx, const RmsNormBackward&) { refuse(ctx); }

}  // namespace zerofleet::cuda
