// A plain matrix product for all shapes and types. A block has 64 × 64 elements of C, a thread 4 × 4. An element is one
// chain of fused multiply-adds in rising k. It uses no tensor cores, and serves products that cuBLASLt does not
// support, or all without it. The file also has the kernels that follow a product whose B has several parts.
#include "kernels/common/cuda/elements.cuh"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/gemm/cuda/plain_gemm.h"

namespace zerofleet::cuda {
namespace {

constexpr int kProductTile = 64;  // rows and columns of C
constexpr int kDepth = 16;        // k at once
constexpr int kGemmThreads = 256;
constexpr int kMaxParts = 4;  // of B

template <class T>
struct Product {
  Rows<const T> a;
  bool a_transposed;
  Rows<const T> b[kMaxParts];
  std::int64_t k_of[kMaxParts];
  int num_parts;
  bool b_along_k;
  std::byte* c;
  std::int64_t c_stride;
  DType c_dtype;
  const std::byte* bias;
  bool accumulate;
  float alpha;
  std::int64_t m, n;
  const std::int32_t* row_range;  // as in GemmProblem
};

/// Part of a product: rows of A and C, or of A and B.
struct Part {
  std::int64_t row_begin = 0, m = 0;
  std::int64_t k_begin = 0, k_of_one = -1;  // −1: k_of each part of B
};

template <class T>
__device__ Part part_of(const Product<T>& p) {
  if (p.row_range == nullptr) return {0, p.m, 0, -1};
  const std::int64_t begin = p.row_range[0], count = p.row_range[1] - begin;
  return p.a_transposed ? Part{0, p.m, begin, count} : Part{begin, count, 0, -1};
}

/// Element (row, k) of A and (k, col) of one part of B, 0 outside.
template <class T>
__device__ float a_at(const Product<T>& p, const Part& mine, std::int64_t row, std::int64_t k, std::int64_t end) {
  if (row >= mine.m || k >= end) return 0.0F;
  return to_float(p.a_transposed ? p.a.row(mine.k_begin + k)[row] : p.a.row(mine.row_begin + row)[k]);
}

template <class T>
__device__ float b_at(const Product<T>& p, const Part& mine, const Rows<const T>& part, std::int64_t k,
                      std::int64_t end, std::int64_t col) {
  if (col >= p.n || k >= end) return 0.0F;
  return to_float(p.b_along_k ? part.row(mine.k_begin + k)[col] : part.row(col)[mine.k_begin + k]);
}

struct PlainTiles {
  float a[kDepth][kProductTile + 4], b[kDepth][kProductTile + 4];
};

/// Neighbouring threads read neighbouring elements, whichever way an operand lies.
template <class T>
__device__ void load_tiles(const Product<T>& p, const Part& mine, const Rows<const T>& part, std::int64_t row,
                           std::int64_t col, std::int64_t before, std::int64_t k, std::int64_t end, PlainTiles& tiles) {
  for (int index = static_cast<int>(threadIdx.x); index < kProductTile * kDepth; index += kGemmThreads) {
    const int a_row = p.a_transposed ? index % kProductTile : index / kDepth,
              a_k = p.a_transposed ? index / kProductTile : index % kDepth;
    tiles.a[a_k][a_row] = a_at(p, mine, row + a_row, before + k + a_k, before + end);
    const int b_col = p.b_along_k ? index % kProductTile : index / kDepth,
              b_k = p.b_along_k ? index / kProductTile : index % kDepth;
    tiles.b[b_k][b_col] = b_at(p, mine, part, k + b_k, end, col + b_col);
  }
}

__device__ void multiply(const PlainTiles& tiles, int depth, float (&sums)[4][4]) {
  const int row = static_cast<int>(threadIdx.x) / 16 * 4, col = static_cast<int>(threadIdx.x) % 16 * 4;
  for (int k = 0; k < depth; ++k) {
    ZF_DEVICE_UNROLL(4)
    for (int i = 0; i < 4; ++i) {
      ZF_DEVICE_UNROLL(4)
      for (int j = 0; j < 4; ++j) sums[i][j] = fmaf(tiles.a[k][row + i], tiles.b[k][col + j], sums[i][j]);
    }
  }
}

template <class T>
__device__ void store_plain_sums(const Product<T>& p, const Part& mine, std::int64_t row, std::int64_t col,
                                 const float (&sums)[4][4]) {
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      if (row + i >= mine.m || col + j >= p.n) continue;
      const Place4 at{(mine.row_begin + row + i) * p.c_stride + col + j, 1, false};
      float value = p.alpha * sums[i][j];
      if (p.bias != nullptr) value = value + load4(p.bias, p.c_dtype, {col + j, 1, false}).v[0];
      store4(p.c, p.c_dtype, at, Vec4{{value, 0, 0, 0}});
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kGemmThreads) gemm_kernel(const __grid_constant__ Product<T> p) {
  __shared__ PlainTiles tiles;
  const unsigned down =
      static_cast<unsigned>((p.m + kProductTile - 1) / kProductTile);  // blocks go down the rows first
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x % down) * kProductTile,
                     col = static_cast<std::int64_t>(blockIdx.x / down) * kProductTile;
  const Part mine = part_of(p);
  if (row >= mine.m) return;
  const std::int64_t my_row = row + threadIdx.x / 16 * 4, my_col = col + threadIdx.x % 16 * 4;
  float sums[4][4] = {};
  for (int i = 0; p.accumulate && i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      if (my_row + i < mine.m && my_col + j < p.n)
        sums[i][j] = load4(p.c, p.c_dtype, {(mine.row_begin + my_row + i) * p.c_stride + my_col + j, 1, false}).v[0];
    }
  }
  std::int64_t before = 0;
  for (int part = 0; part < p.num_parts; ++part) {
    const std::int64_t end = mine.k_of_one >= 0 ? mine.k_of_one : p.k_of[part];
    for (std::int64_t k = 0; k < end; k += kDepth) {
      load_tiles(p, mine, p.b[part], row, col, before, k, end, tiles);
      __syncthreads();
      multiply(tiles, end - k < kDepth ? static_cast<int>(end - k) : kDepth, sums);
      __syncthreads();
    }
    before += end;
  }
  store_plain_sums(p, mine, my_row, my_col, sums);
}

template <class T>
Product<T> product_of(const GemmProblem& problem, const RightOperand& right) {
  const bool is_part_of_k = problem.row_range != nullptr && problem.a_transposed;
  require(right.parts.size() <= (is_part_of_k ? 1 : kMaxParts), "invalid_argument",
          "gemm: B has too many parts for a CUDA device");
  Product<T> p{};
  p.a = rows_of<T>(problem.a);
  p.a_transposed = problem.a_transposed;
  p.num_parts = static_cast<int>(right.parts.size());
  p.b_along_k = right.rows == SourceRows::kAlongK;
  for (std::size_t part = 0; part < right.parts.size(); ++part) {
    p.b[part] = rows_of<T>(right.parts[part]);
    p.k_of[part] = right.k_of(part);
  }
  p.c = static_cast<std::byte*>(problem.c.data);
  p.c_stride = problem.c.stride;
  p.c_dtype = problem.c.dtype;
  p.bias = static_cast<const std::byte*>(problem.bias);
  p.accumulate = problem.accumulate;
  p.alpha = problem.alpha;
  p.m = problem.c.rows;
  p.row_range = problem.row_range;
  p.n = problem.c.cols;
  return p;
}

struct Rounding {
  Rows<const float> sums;
  const std::byte* bias;
  std::byte* c;
  std::int64_t c_stride;
  DType dtype;
  std::int64_t cols;
};

/// A block per row, a thread per column.
__global__ void __launch_bounds__(kGemmThreads) rounding_kernel(const Rounding a) {
  const std::int64_t row = blockIdx.x;
  for (std::int64_t col = threadIdx.x; col < a.cols; col += kGemmThreads) {
    float value = a.sums.row(row)[col];
    if (a.bias != nullptr) value = value + load4(a.bias, a.dtype, {col, 1, false}).v[0];
    store4(a.c, a.dtype, {row * a.c_stride + col, 1, false}, Vec4{{value, 0, 0, 0}});
  }
}

}  // namespace

void plain_gemm(const Context& ctx, const GemmProblem& problem, const RightOperand& right) {
  const Stream& stream = stream_of(ctx);
  if (problem.c.rows == 0 || problem.c.cols == 0) return;
  const std::int64_t down = num_blocks_for(problem.c.rows, kProductTile),
                     across = num_blocks_for(problem.c.cols, kProductTile);
  const unsigned blocks = num_blocks_for(down * across, 1);
  with_element(problem.a.dtype, [&]<class T>(T*) {
    launch("gemm", stream, {blocks, kGemmThreads}, gemm_kernel<T>, product_of<T>(problem, right));
  });
}

void round_sums(const Context& ctx, const ConstMatrix& sums, const void* bias, const Matrix& c) {
  const Stream& stream = stream_of(ctx);
  if (c.rows == 0) return;
  const Rounding a{rows_of<float>(sums),
                   static_cast<const std::byte*>(bias),
                   static_cast<std::byte*>(c.data),
                   c.stride,
                   c.dtype,
                   c.cols};
  launch("gemm", stream, {num_blocks_for(c.rows, 1), kGemmThreads}, rounding_kernel, a);
}

}  // namespace zerofleet::cuda
