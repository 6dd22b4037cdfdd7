#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/row_vector.cuh"

// Copies of rows, which may be picked by number: 16 bytes a thread, each byte read and written once.
namespace zerofleet::cuda {

template <class T>
__global__ void __launch_bounds__(kSweepThreads)
    copy_rows_kernel(const Sweep<kWidth<T>> sweep, const Rows<const T> source, const std::int32_t* numbers,
                     const Rows<T> target) {
  constexpr int N = kWidth<T>;
  sweep.of_thread([&](std::int64_t row, const Columns<N>& at) {
    const T* from = source.row(numbers == nullptr ? row : numbers[row]) + at.first;
    T* to = target.row(row) + at.first;
    if (at.whole) {
      *reinterpret_cast<Packed<T, N>*>(to) = *reinterpret_cast<const Packed<T, N>*>(from);
    } else {
      for (int k = 0; k < at.count; ++k) to[k] = from[k];
    }
  });
}

/// target[r] = source[numbers[r]]. numbers: on the device, or null: r itself.
inline void copy_rows(const Context& ctx, const char* name, const ConstMatrix& source, const std::int32_t* numbers,
                      const Matrix& target) {
  const Stream& stream = stream_of(ctx);
  with_element(target.dtype, [&]<class T>(T*) {
    constexpr int N = kWidth<T>;
    const Sweep<N> sweep(target.rows, target.cols, rows_aligned_for<N>(source, target));
    if (sweep.empty()) return;
    launch(name, stream, {sweep.num_blocks(), kSweepThreads}, copy_rows_kernel<T>, sweep, rows_of<T>(source), numbers,
           rows_of<T>(target));
  });
}

}  // namespace zerofleet::cuda
