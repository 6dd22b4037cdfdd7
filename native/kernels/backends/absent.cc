// The kernels of a build without CUDA: use() throws there.
#include "core/cuda/cuda_runtime.h"
#include "core/error.h"
#include "kernels/flat/cuda/launch.h"
#include "kernels/optimizer/cuda/launch.h"

namespace zerofleet::cuda {
namespace {

using Segments = std::span<const OptimizerSegment>;

}  // namespace

void cast_from_f32(const Context& context, std::span<const float>, DType, std::span<std::byte>, float) {
  use(context.device);
}
void cast_to_f32(const Context& context, std::span<const std::byte>, DType, std::span<float>) { use(context.device); }
void fold_pieces(const Context& context, const Fold&) { use(context.device); }
void block_stats(const Context& context, std::span<const std::byte>, DType, std::int64_t, std::span<double>,
                 std::span<float>) {
  use(context.device);
}
void hash_blocks(const Context& context, std::span<const std::byte>, std::uint64_t, std::span<Hash128>) {
  use(context.device);
}
void adamw(const Context& context, Segments, const OptimizerDTypes&, std::span<const AdamWScalars>) {
  use(context.device);
}
void adam(const Context& context, Segments, const OptimizerDTypes&, std::span<const AdamScalars>) {
  use(context.device);
}
void lamb_prepare(const Context& context, Segments, const OptimizerDTypes&, std::span<const LambScalars>,
                  const LambSums&) {
  use(context.device);
}
void lamb_update(const Context& context, Segments, const OptimizerDTypes&, std::span<const LambScalars>,
                 std::span<const float>) {
  use(context.device);
}
void lion(const Context& context, Segments, const OptimizerDTypes&, std::span<const LionScalars>) {
  use(context.device);
}
void adagrad(const Context& context, Segments, const OptimizerDTypes&, std::span<const AdagradScalars>) {
  use(context.device);
}
void sgd(const Context& context, Segments, const OptimizerDTypes&, std::span<const SgdScalars>) { use(context.device); }

}  // namespace zerofleet::cuda
