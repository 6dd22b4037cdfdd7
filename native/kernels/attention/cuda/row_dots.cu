// Preparation of the backwards of attention.
#include "kernels/attention/cuda/attention_launch.h"
#include "kernels/common/cuda/block_sum.cuh"
#include "kernels/common/cuda/elements.cuh"
#include "kernels/common/cuda/launch_grid.cuh"

namespace zerofleet::cuda {
namespace {

template <class T>
struct RowDots {
  Rows<const T> a, b;  // (B·T, H·d)
  float* dots;         // (B, H, T)
  std::int64_t rows;   // B·T·H
  int length, heads, head_dim;
};

/// dots = Σ over the columns of a head of a · b. One warp a row and head, those of a row next to each other.
template <class T>
__global__ void __launch_bounds__(kWarpThreads) row_dots_kernel(const __grid_constant__ RowDots<T> r) {
  const std::int64_t index = warp_of_grid();
  if (index >= r.rows) return;
  const std::int64_t row = index / r.heads, head = index % r.heads;
  const T *a = r.a.row(row) + head * r.head_dim, *b = r.b.row(row) + head * r.head_dim;
  float sum = 0;
  for (int i = lane_of_warp(); i < r.head_dim; i += 32) sum = fmaf(to_float(a[i]), to_float(b[i]), sum);
  sum = warp_sum(sum);
  if (lane_of_warp() == 0) r.dots[(row / r.length * r.heads + head) * r.length + row % r.length] = sum;
}

}  // namespace

void row_dots(const Context& ctx, const AttentionBackward& args, float* dots) {
  const AttentionShape& shape = args.shape;
  const std::int64_t rows = shape.batch * shape.sequence_length * shape.num_heads;
  with_element(args.out.dtype, [&]<class T>(T*) {
    const RowDots<T> call{rows_of<T>(args.dout),
                          rows_of<T>(args.out),
                          dots,
                          rows,
                          static_cast<int>(shape.sequence_length),
                          static_cast<int>(shape.num_heads),
                          static_cast<int>(shape.head_dim)};
    launch("attention_backward", stream_of(ctx), {num_blocks_for(rows, kWarpThreads / 32), kWarpThreads},
           row_dots_kernel<T>, call);
  });
}

}  // namespace zerofleet::cuda
