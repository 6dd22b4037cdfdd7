// Dropout. One call of Philox makes four draws, for elements that are 16 apart. So a thread has four neighbours of
// each: 16 elements, read and written once.
#include "core/device/context.h"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/row_vector.cuh"
#include "kernels/elementwise/cuda/dropout_mask.cuh"
#include "kernels/elementwise/dropout.h"

namespace zerofleet::cuda {
namespace {

constexpr int kDropoutThreads = 256;
constexpr int kWords = 4;       // of a call of Philox
constexpr int kNeighbours = 4;  // elements of an access
constexpr int kDistance = 16;   // between elements that share a call
constexpr int kGroup = kWords * kDistance;

template <class T>
struct DropoutArguments {
  DropoutRule rule;
  Rows<const T> x;
  Rows<T> y;
  std::int64_t numel, cols;
  bool aligned;  // and kNeighbours elements never lie in two rows
};

/// Position of an element.
struct ElementPosition {
  std::int64_t row, col;
};

__device__ ElementPosition position_of(std::int64_t element, std::int64_t cols) {
  if ((static_cast<std::uint64_t>(element) | static_cast<std::uint64_t>(cols)) >> 32 ==
      0) {  // much the faster division
    const auto row = static_cast<std::uint32_t>(element) / static_cast<std::uint32_t>(cols);
    return {row, element - row * cols};
  }
  return {element / cols, element % cols};
}

template <class T>
__global__ void __launch_bounds__(kDropoutThreads) dropout_kernel(const DropoutArguments<T> a) {
  constexpr int kPerGroup = kDistance / kNeighbours;  // threads
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kDropoutThreads + threadIdx.x;
  const std::int64_t first = thread / kPerGroup * kGroup + thread % kPerGroup * kNeighbours;
  std::array<std::uint32_t, kWords> draws[kNeighbours] = {};
  if (a.rule.dropped_below > 0) {
#pragma unroll
    for (int k = 0; k < kNeighbours; ++k)
      draws[k] = dropout_draws(a.rule, a.rule.first_element + static_cast<std::uint64_t>(first + k));
  }
  const auto factor = [&](int word, int k) { return draws[k][word] < a.rule.dropped_below ? 0.0F : a.rule.scale; };
#pragma unroll
  for (int word = 0; word < kWords; ++word) {
    const std::int64_t begin = first + word * kDistance;
    if (begin >= a.numel) return;
    if (a.aligned) {
      const ElementPosition position = position_of(begin, a.cols);
      const Columns<kNeighbours> at{position.col, kNeighbours, true};
      const Lanes<kNeighbours> x = load(a.x.row(position.row), at);
      Lanes<kNeighbours> y{};
      if (a.rule.adds) y = load(a.y.row(position.row), at);
      store(a.y.row(position.row), at, lanes<kNeighbours>([&](int k) {
              const float kept = x.v[k] * factor(word, k);
              return a.rule.adds ? y.v[k] + kept : kept;
            }));
      continue;
    }
#pragma unroll
    for (int k = 0; k < kNeighbours; ++k) {
      if (begin + k >= a.numel) break;
      const ElementPosition position = position_of(begin + k, a.cols);
      const float kept = widened(a.x.row(position.row)[position.col]) * factor(word, k);
      T& y = a.y.row(position.row)[position.col];
      y = narrowed<T>(a.rule.adds ? widened(y) + kept : kept);
    }
  }
}

}  // namespace

void dropout(const Context& ctx, const DropoutRule& rule, const ConstMatrix& x, const Matrix& y) {
  const Stream& stream = stream_of(ctx);
  const std::int64_t numel = x.rows * x.cols, groups = (numel + kGroup - 1) / kGroup;
  if (numel == 0) return;
  with_element(x.dtype, [&]<class T>(T*) {
    const DropoutArguments<T> a{rule,  rows_of<T>(x), rows_of<T>(y),
                                numel, x.cols,        rows_aligned_for<kNeighbours>(x, y) && x.cols % kNeighbours == 0};
    const unsigned blocks = num_blocks_for(groups * (kDistance / kNeighbours), kDropoutThreads);
    launch("dropout", stream, {blocks, kDropoutThreads}, dropout_kernel<T>, a);
  });
}

}  // namespace zerofleet::cuda
