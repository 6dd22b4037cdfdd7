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
  bool inverse, aligned, interleaved;
};

/// Pairs of one head: element i of both halves.
template <int N, class T>
struct Halves {
  T* first;
  unsigned half;
  Columns<N> at;

  __device__ Halves(T* head, const Columns<N>& pairs, unsigned num_pairs) : first(head), half(num_pairs), at(pairs) {}
  __device__ void read(Lanes<N>& x1, Lanes<N>& x2) const {
    x1 = load(first, at);
    x2 = load(first + half, at);
  }
  __device__ void write(const Lanes<N>& x1, const Lanes<N>& x2) const {
    store(first, at, x1);
    store(first + half, at, x2);
  }
};

/// Pairs of one head: elements 2i and 2i + 1.
template <int N, class T>
struct Neighbours {
  T* first;
  Columns<N> low, high;

  __device__ Neighbours(T* head, const Columns<N>& pairs, unsigned num_pairs)
      : first(head),
        low(columns_from<N>(2 * pairs.first, 2 * num_pairs, pairs.whole)),
        high(columns_from<N>(2 * pairs.first + N, 2 * num_pairs, pairs.whole)) {}
  __device__ void read(Lanes<N>& x1, Lanes<N>& x2) const {
    const Lanes<N> a = load(first, low), b = load(first, high);
    x1 = lanes<N>([&](int k) { return k < N / 2 ? a.v[2 * k] : b.v[2 * k - N]; });
    x2 = lanes<N>([&](int k) { return k < N / 2 ? a.v[2 * k + 1] : b.v[2 * k + 1 - N]; });
  }
  __device__ void write(const Lanes<N>& x1, const Lanes<N>& x2) const {
    const auto pairs_from = [&](int pair) {
      return lanes<N>([&](int k) { return k % 2 == 0 ? x1.v[pair + k / 2] : x2.v[pair + k / 2]; });
    };
    store(first, low, pairs_from(0));
    store(first, high, pairs_from(N / 2));
  }
};

template <class Pairs, int N>
__device__ void rotate(const Pairs& pairs, const Lanes<N>& cosine, const Lanes<N>& sine) {
  Lanes<N> x1, x2;
  pairs.read(x1, x2);
  pairs.write(lanes<N>([&](int k) { return x1.v[k] * cosine.v[k] - x2.v[k] * sine.v[k]; }),
              lanes<N>([&](int k) { return x2.v[k] * cosine.v[k] + x1.v[k] * sine.v[k]; }));
}

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
    if (a.interleaved)
      rotate(Neighbours<N, T>(first, at, a.half), cosine, sine);
    else
      rotate(Halves<N, T>(first, at, a.half), cosine, sine);
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
                             rows_aligned_for<N>(args.x) && half % N == 0 && head_dim % N == 0,
                             args.interleaved};
    launch("rope", stream, {blocks, kRopeThreads}, rope_kernel<T>, a);
  });
}

}  // namespace zerofleet::cuda
