// Casts and the fold of received pieces: four elements a thread, one pass over memory.
#include "core/device/context.h"
#include "core/dtype.h"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/flat/cuda/flat_elements.h"
#include "kernels/flat/fold.h"

namespace zerofleet::cuda {
namespace {

__device__ std::int64_t first_of_thread() {
  return 4 * (static_cast<std::int64_t>(blockIdx.x) * kFlatThreads + threadIdx.x);
}

__global__ void __launch_bounds__(kFlatThreads) cast_kernel(const CastArrays arrays) {
  const std::int64_t first = first_of_thread();
  if (first < arrays.numel) cast4(arrays, first);
}

__global__ void __launch_bounds__(kFlatThreads) fold_kernel(const FoldArrays arrays) {
  const std::int64_t first = first_of_thread();
  if (first < arrays.numel) fold4(arrays, first);
}

void cast(const Context& context, CastArrays arrays) {
  const Stream& stream = stream_of(context);
  if (arrays.numel == 0) return;
  arrays.aligned =
      aligned_for_four(arrays.source, arrays.source_dtype) && aligned_for_four(arrays.target, arrays.target_dtype);
  launch("cast", stream, {num_blocks_for(arrays.numel, 4 * kFlatThreads), kFlatThreads}, cast_kernel, arrays);
}

}  // namespace

void cast_from_f32(const Context& context, std::span<const float> source, DType dtype, std::span<std::byte> target,
                   float factor) {
  cast(context, {std::as_bytes(source).data(), DType::kF32, target.data(), dtype,
                 static_cast<std::int64_t>(source.size()), factor, false});
}

void cast_to_f32(const Context& context, std::span<const std::byte> source, DType dtype, std::span<float> target) {
  cast(context, {source.data(), dtype, std::as_writable_bytes(target).data(), DType::kF32,
                 static_cast<std::int64_t>(target.size()), 1.0F, false});
}

void fold_pieces(const Context& context, const Fold& fold) {
  const Stream& stream = stream_of(context);
  const auto numel = static_cast<std::int64_t>(fold.sum.size() / size_of(fold.sum_dtype));
  if (numel == 0) return;
  // Pieces lie one after another, so only a length that is a multiple of four keeps all of them aligned.
  const bool aligned = aligned_for_four(fold.pieces.data(), fold.piece_dtype) &&
                       aligned_for_four(fold.sum.data(), fold.sum_dtype) && numel % 4 == 0;
  const FoldArrays arrays{fold.pieces.data(), fold.piece_dtype, fold.num_pieces, fold.sum.data(), fold.sum_dtype, numel,
                          fold.restart,       aligned};
  launch("fold_pieces", stream, {num_blocks_for(numel, 4 * kFlatThreads), kFlatThreads}, fold_kernel, arrays);
}

}  // namespace zerofleet::cuda
