// The kernels of a build without CUDA: each says that it is not there.
#include "core/cuda/cuda_runtime.h"
#include "core/error.h"
#include "kernels/cuda/launch.h"

namespace zerofleet::cuda {
namespace {

using Segments = std::span<const OptimizerSegment>;

void refuse(const Context& context) { use(context.device); }  // throws in such a build

}  // namespace

void cast_from_f32(const Context& context, std::span<const float>, DType, std::span<std::byte>, float) {
  refuse(context);
}
void cast_to_f32(const Context& context, std::span<const std::byte>, DType, std::span<float>) { refuse(context); }
void fold_pieces(const Context& context, const Fold&) { refuse(context); }
void block_stats(const Context& context, std::span<const std::byte>, DType, std::int64_t, std::span<double>,
                 std::span<float>) {
  refuse(context);
}
void hash_blocks(const Context& context, std::span<const std::byte>, std::uint64_t, std::span<Hash128>) {
  refuse(context);
}
void adamw(const Context& context, Segments, const OptimizerDTypes&, std::span<const AdamWScalars>) { refuse(context); }
void adam(const Context& context, Segments, const OptimizerDTypes&, std::span<const AdamScalars>) { refuse(context); }
void lamb_prepare(const Context& context, Segments, const OptimizerDTypes&, std::span<const LambScalars>,
                  const LambSums&) {
  refuse(context);
}
void lamb_update(const Context& context, Segments, const OptimizerDTypes&, std::span<const LambScalars>,
                 std::span<const float>) {
  refuse(context);
}
void lion(const Context& context, Segments, const OptimizerDTypes&, std::span<const LionScalars>) { refuse(context); }
void adagrad(const Context& context, Segments, const OptimizerDTypes&, std::span<const AdagradScalars>) {
  refuse(context);
}
void sgd(const Context& context, Segments, const OptimizerDTypes&, std::span<const SgdScalars>) { refuse(context); }

}  // namespace zerofleet::cuda
