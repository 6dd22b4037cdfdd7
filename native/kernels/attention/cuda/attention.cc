// Attention on CUDA: cuDNN where it is there and computes a call, and kernels of our own.
#include "kernels/attention/attention.h"

#include <memory>

#include "core/device/context.h"
#include "kernels/attention/cuda/attention_launch.h"
#include "kernels/attention/cuda/cudnn_attention.h"
#include "kernels/common/cuda/temporary.h"

namespace zerofleet::cuda {
namespace {

struct AttentionState final : KernelState {
  explicit AttentionState(const Context& ctx) : by_cudnn(ctx, cudnn::open_default_library()) {}

  cudnn::Attention by_cudnn;
};

template <class Args>
bool by_library(const Context& ctx, Scratch& scratch, const Args& args) {
  if (args.shape.soft_cap != 0) return false;  // its graphs have no soft cap
  auto& state = scratch.state<AttentionState>([&] { return std::make_unique<AttentionState>(ctx); });
  return state.by_cudnn.run(cudnn::call_of(args));
}

bool takes_tensor_cores(const AttentionShape& shape, DType dtype) {
  return dtype != DType::kF32 && shape.head_dim <= kMmaWidth && shape.soft_cap == 0;
}

}  // namespace

void attention(const Context& ctx, Scratch& scratch, const AttentionForward& args) {
  if (args.lse.empty() || by_library(ctx, scratch, args)) return;
  if (takes_tensor_cores(args.shape, args.qkv.dtype)) return mma_attention(ctx, args);
  plain_attention(ctx, args);
}

void attention_backward(const Context& ctx, Scratch& scratch, const AttentionBackward& args) {
  if (args.lse.empty() || by_library(ctx, scratch, args)) return;
  Temporary<float> delta(ctx, args.lse.size());
  row_dots(ctx, args, delta.data());
  if (takes_tensor_cores(args.shape, args.qkv.dtype)) return mma_attention_backward(ctx, args, delta.data());
  plain_attention_backward(ctx, args, delta.data());
}

}  // namespace zerofleet::cuda
