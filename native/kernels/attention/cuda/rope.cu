// Rotary positions: a thread rotates the same pairs of up to four heads of a row, so that it reads the table once for
// them. Beside the table, which stays in the caches, x is read and written once.
#include "core/device/context.h"
#include "kernels/attention/rope.h"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/row_vector.cuh"

namespace zerofleet::cuda {
namespace {

constexpr unsigned kHeads = 4;  // of a thread
constexpr int kRopeThreads = 256;

template <class T>
struct RopeArguments {
  Rows<T> x;
  const float *cosine, *sine;     // (positions, half)
  const std::int32_t* positions;  // (rows), or null
  unsigned sequence_length;
  unsigned rows, num_heads, head_dim, half;  // half: pairs of a head that are rotated
  unsigned groups, per_row;                  // threads for the pairs of a head, and for a row
  bool inverse, aligned;
};

template <class T>
__global__ void __launch_bounds__(kRopeThreads) rope_kernel(const RopeArguments<T> a) {
  constexpr int N = kWidth<T>;
  const unsigned index = blockIdx.x * kRopeThreads + threadIdx.x, row = index / a.per_row, of_row = index % a.per_row;
  if (row >= a.rows) return;
  const std::int64_t position =
      a.positions != nullptr ? a.positions[row] : static_cast<std::int32_t>(row % a.sequence_length);
  const Columns<N> at = columns_from<N>(of_row % a.groups * N, a.half, a.aligned);
  const Lanes<N> cosine = load(a.cosine + position * a.half, at);
  Lanes<N> sine = load(a.sine + position * a.half, at);
  if (a.inverse) sine = lanes<N>([&](int k) { return -sine.v[k]; });
  const unsigned first_head = of_row / a.groups * kHeads;
#pragma unroll
  for (unsigned i = 0; i < kHeads; ++i) {
    const unsigned head = first_head + i;
    if (head >= a.num_heads) return;
    T* first = a.x.row(row) + static_cast<std::int64_t>(head) * a.head_dim;
    T* second = first + a.half;
    const Lanes<N> x1 = load(first, at), x2 = load(second, at);
    store(first, at, lanes<N>([&](int k) { return x1.v[k] * cosine.v[k] - x2.v[k] * sine.v[k]; }));
    store(second, at, lanes<N>([&](int k) { return x2.v[k] * cosine.v[k] + x1.v[k] * sine.v[k]; }));
  }
}

}  // namespace

void rope(const Context& ctx, const Rope& args) {
  const Stream& stream = stream_of(ctx);
  if (args.x.rows == 0 || args.num_heads == 0) return;
  with_element(args.x.dtype, [&]<class T>(T*) {
    constexpr int N = kWidth<T>;
    const std::int64_t head_dim = args.x.cols / args.num_heads, half = args.table->rotary_dim() / 2,
                       groups = (half + N - 1) / N, per_row = (args.num_heads + kHeads - 1) / kHeads * groups;
    const unsigned blocks = num_blocks_for(args.x.rows * per_row, kRopeThreads);
    require(args.x.rows * per_row <= INT32_MAX, "invalid_argument", "a matrix is too large for one kernel launch");
    const RopeArguments<T> a{rows_of<T>(args.x),
                             args.table->cosine().data(),
                             args.table->sine().data(),
                             args.positions.on_device(),
                             static_cast<unsigned>(args.sequence_length),
                             static_cast<unsigned>(args.x.rows),
                             static_cast<unsigned>(args.num_heads),
                             static_cast<unsigned>(head_dim),
                             static_cast<unsigned>(half),
                             static_cast<unsigned>(groups),
                             static_cast<unsigned>(per_row),
                             args.inverse,
                             rows_aligned_for<N>(args.x) && half % N == 0 && head_dim % N == 0};
    launch("rope", stream, {blocks, kRopeThreads}, rope_kernel<T>, a);
  });
}

}  // namespace zerofleet::cuda
