// Norms of the outputs of an adapted matrix, and the passes of their factors.
#include <algorithm>

#include "core/device/context.h"
#include "kernels/adapter/magnitude.h"
#include "kernels/common/cuda/column_sums.cuh"
#include "kernels/common/cuda/row_team.cuh"
#include "kernels/elementwise/cuda/add_sums.cuh"

namespace zerofleet::cuda {
namespace {

/// AdaptedMatrix as an argument of a kernel.
template <class T>
struct Adapted {
  Rows<const T> weight;
  const T *down, *up;  // (rank, in), (out, rank)
  std::int64_t in, out, rank;
  float scale;

  __device__ float up_at(std::int64_t o, std::int64_t r) const { return scale * widened(up[o * rank + r]); }
};

template <class T>
Adapted<T> adapted_of(const AdaptedMatrix& m) {
  return {rows_of<T>(m.weight),
          static_cast<const T*>(m.down.data),
          static_cast<const T*>(m.up.data),
          m.in(),
          m.out(),
          m.rank(),
          m.scale};
}

constexpr int kTeamRows = 4;  // rows that share the loads of A

/// sums (out) of an (out, in) matrix: a team for kTeamRows rows.
template <class T, class Team>
__global__ void __launch_bounds__(kRowThreads) row_squares_kernel(const Adapted<T> m, bool aligned, float* sums) {
  constexpr int N = kWidth<T>;
  const std::int64_t first = Team::row() * kTeamRows;
  if (first >= m.out) return;
  std::int64_t rows[kTeamRows];  // behind the last one, that one again
  float squares[kTeamRows] = {};
#pragma unroll
  for (int j = 0; j < kTeamRows; ++j) rows[j] = first + j < m.out ? first + j : m.out - 1;
  Team::template sweep<N>(m.in, aligned, [&](const Columns<N>& at) {
    Lanes<N> v[kTeamRows];
#pragma unroll
    for (int j = 0; j < kTeamRows; ++j) v[j] = load(m.weight.row(rows[j]), at);
    for (std::int64_t r = 0; r < m.rank; ++r) {
      const Lanes<N> down = load(m.down + r * m.in, at);
#pragma unroll
      for (int j = 0; j < kTeamRows; ++j) {
        const float up = m.up_at(rows[j], r);
        v[j] = lanes<N>([&](int k) { return fmaf(up, down.v[k], v[j].v[k]); });
      }
    }
#pragma unroll
    for (int j = 0; j < kTeamRows; ++j) {
#pragma unroll
      for (int k = 0; k < N; ++k) squares[j] = fmaf(v[j].v[k], v[j].v[k], squares[j]);
    }
  });
#pragma unroll
  for (int j = 0; j < kTeamRows; ++j) {
    const float sum = Team::sum(squares[j]);
    if (Team::is_first() && first + j < m.out) sums[first + j] = sum;
  }
}

/// The same of an (in, out) matrix.
template <class T>
struct SquareTerm {
  static constexpr int kSums = 1;
  Adapted<T> m;

  __device__ void add(std::int64_t row, std::int64_t, const SumColumns& at, SumLanes (&total)[kSums]) const {
    SumLanes v = load(m.weight.row(row), at);
    for (std::int64_t r = 0; r < m.rank; ++r) {
      const float down = widened(m.down[r * m.in + row]);
      v = lanes<kColumnWidth>(
          [&](int k) { return k < at.count ? fmaf(m.up_at(at.first + k, r), down, v.v[k]) : 0.0F; });
    }
    total[0] = lanes<kColumnWidth>([&](int k) { return fmaf(v.v[k], v.v[k], total[0].v[k]); });
  }
};

/// From squares to norms in place, and to what divides by them.
template <class T>
__global__ void __launch_bounds__(kFlatThreads)
    norms_kernel(std::int64_t count, float* norms, const T* magnitude, float* factors, float* inverses) {
  const std::int64_t o = static_cast<std::int64_t>(blockIdx.x) * kFlatThreads + threadIdx.x;
  if (o >= count) return;
  const float norm = widened(narrowed<T>(sqrtf(norms[o])));
  norms[o] = norm;
  if (magnitude == nullptr) return;
  factors[o] = norm == 0 ? 0.0F : widened(magnitude[o]) / norm;
  inverses[o] = norm == 0 ? 0.0F : 1.0F / norm;
}

/// As GemmProblem::row_range.
struct RowRange {
  const std::int32_t* range;
  __device__ bool has(std::int64_t row) const { return range == nullptr || (row >= range[0] && row < range[1]); }
};

template <class T>
__global__ void __launch_bounds__(kSweepThreads)
    scale_columns_kernel(const Sweep<kWidth<T>> sweep, const Rows<const T> x, const float* factors, const T* bias,
                         const Rows<T> y, const RowRange range) {
  constexpr int N = kWidth<T>;
  sweep.of_thread([&](std::int64_t row, const Columns<N>& at) {
    if (!range.has(row)) return;
    const Lanes<N> value = load(x.row(row), at), factor = load(factors, at);
    const Lanes<N> added = bias == nullptr ? Lanes<N>{} : load(bias, at);
    store(y.row(row), at, lanes<N>([&](int k) { return factor.v[k] * value.v[k] + added.v[k]; }));
  });
}

template <class T>
struct MagnitudeTerm {
  static constexpr int kSums = 1;
  Rows<const T> dy, z;
  const float* inverses;
  RowRange range;

  __device__ void add(std::int64_t row, std::int64_t, const SumColumns& at, SumLanes (&total)[kSums]) const {
    if (!range.has(row)) return;
    const SumLanes d = load(dy.row(row), at), value = load(z.row(row), at);
    const SumLanes inverse = load(inverses, SumColumns{at.first, at.count, false});
    total[0] = lanes<kColumnWidth>([&](int k) { return fmaf(d.v[k] * value.v[k], inverse.v[k], total[0].v[k]); });
  }
};

template <class T>
void sum_squares(const Context& ctx, const AdaptedMatrix& matrix, float* sums) {
  const Adapted<T> m = adapted_of<T>(matrix);
  if (matrix.in_first)
    return column_sums(ctx, "direction_norms", SquareTerm<T>{m},
                       {m.in, m.out, rows_aligned_for<kColumnWidth>(matrix.weight)}, {sums});
  constexpr int N = kWidth<T>;
  const bool aligned = rows_aligned_for<N>(matrix.weight, matrix.down);
  with_row_team(m.in, [&]<class Team>(Team) {
    launch("direction_norms", stream_of(ctx), {num_blocks_for(m.out, Team::kRowsPerBlock * kTeamRows), kRowThreads},
           row_squares_kernel<T, Team>, m, aligned, sums);
  });
}

}  // namespace

void direction_norms(const Context& ctx, const DirectionNorms& args) {
  const std::int64_t out = args.matrix.out();
  if (out == 0) return;
  with_element(args.matrix.weight.dtype, [&]<class T>(T*) {
    sum_squares<T>(ctx, args.matrix, args.norms.data());
    launch("direction_norms", stream_of(ctx), {num_blocks_for(out, kFlatThreads), kFlatThreads}, norms_kernel<T>, out,
           args.norms.data(), static_cast<const T*>(args.magnitude), args.factors.data(), args.inverses.data());
  });
}

void scale_columns(const Context& ctx, const ColumnScaling& args) {
  with_element(args.y.dtype, [&]<class T>(T*) {
    constexpr int N = kWidth<T>;
    const bool aligned = rows_aligned_for<N>(args.x, args.y) && aligned_for<N>(args.factors.data(), DType::kF32) &&
                         aligned_for<N>(args.bias, args.y.dtype);
    const Sweep<N> sweep(args.y.rows, args.y.cols, aligned);
    if (sweep.empty()) return;
    launch("scale_columns", stream_of(ctx), {sweep.num_blocks(), kSweepThreads}, scale_columns_kernel<T>, sweep,
           rows_of<T>(args.x), args.factors.data(), static_cast<const T*>(args.bias), rows_of<T>(args.y),
           RowRange{args.row_range});
  });
}

void magnitude_gradient(const Context& ctx, const MagnitudeGradient& args) {
  if (!args.begins) {
    return add_sums(ctx, args.gradient, [&](std::span<float> sums) {
      cuda::magnitude_gradient(ctx, {args.dy, args.z, args.inverses, sums, args.row_range});
    });
  }
  with_element(args.dy.dtype, [&]<class T>(T*) {
    column_sums(ctx, "magnitude_gradient",
                MagnitudeTerm<T>{rows_of<T>(args.dy), rows_of<T>(args.z), args.inverses.data(), {args.row_range}},
                {args.dy.rows, args.dy.cols, rows_aligned_for<kColumnWidth>(args.dy, args.z)}, {args.gradient.data()});
  });
}

}  // namespace zerofleet::cuda
