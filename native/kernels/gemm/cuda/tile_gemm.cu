// Matrix products on tensor cores for shapes that are not known before, such as those of experts. A block computes
// 128 × 128 elements of C, a warp 64 × 32, over k in steps of 32 of which four are in flight. Several products share a
// launch, so that small ones fill the device together. If only the device knows a product's number of rows, the launch
// has blocks for the largest number, and surplus blocks end at once.
//
// A block makes 2 · 128 · 128 · 32 operations for 16 KiB that it reads, 64 per byte. An H100 makes about 250 operations
// per byte of its memory, so tiles must mostly come from the L2 cache. Therefore neighbouring blocks have the same
// columns of B. Shared memory: 80 KiB at most, two blocks on a multiprocessor. Registers by nvcc 13.0, sm_80 and sm_90:
// 122 to 128, none spilled. Nothing of this was measured.
#include <algorithm>
#include <map>
#include <vector>

#include "kernels/common/cuda/elements.cuh"
#include "kernels/gemm/cuda/tile_gemm.cuh"
#include "kernels/gemm/cuda/tile_gemm.h"

namespace zerofleet::cuda {
namespace {

constexpr int kWarpRows = 64, kWarpCols = 32;
constexpr int kWarpsAcross = kTileCols / kWarpCols;
constexpr int kRowFragments = kWarpRows / 16, kColFragments = kWarpCols / 8;
static_assert(kTileRows / kWarpRows * kWarpsAcross * 32 == kTileThreads);

constexpr int kMaxCalls = 44;  // of a launch, whose arguments may have 4 KiB

template <class T>
struct TileCalls {
  TileCall<T> calls[kMaxCalls];
  int count;
};

__host__ __device__ constexpr int tiles_of(int length, int tile) { return (length + tile - 1) / tile; }

/// The rows that take part, from the first one on.
template <bool kATransposed, class T>
__device__ TileCall<T> in_range(TileCall<T> call) {
  if (call.row_range == nullptr) return call;
  const int begin = call.row_range[0], count = call.row_range[1] - begin;
  call.a += static_cast<std::int64_t>(begin) * call.a_stride;
  if constexpr (kATransposed) {
    call.b[0] += static_cast<std::int64_t>(begin) * call.b_stride[0];
    call.k_of[0] = count;
  } else {
    call.c += static_cast<std::int64_t>(begin) * call.c_stride * (call.c_dtype == DType::kF32 ? 4 : 2);
    call.m = count;
  }
  return call;
}

template <bool kATransposed, class T>
__device__ int num_tiles(const TileCall<T>& call) {
  const bool is_part = !kATransposed && call.row_range != nullptr;
  const int m = is_part ? call.row_range[1] - call.row_range[0] : call.m;
  return tiles_of(m, kTileRows) * tiles_of(call.n, kTileCols);
}

using Sums = FragmentC[kRowFragments][kColFragments];

template <class Feed, class T>
__device__ void multiply_step(const T* a, const T* b, int row, int col, Sums& sums) {
  ZF_DEVICE_UNROLL(kTileDepth / 16)
  for (int k = 0; k < kTileDepth; k += 16) {
    FragmentA left[kRowFragments];
    ZF_DEVICE_UNROLL(kRowFragments)
    for (int r = 0; r < kRowFragments; ++r) Feed::A::template fragment<true>(left[r].r, a, row + 16 * r, k);
    ZF_DEVICE_UNROLL(kColFragments / 2)
    for (int n = 0; n < kColFragments; n += 2) {
      std::uint32_t right[4];
      Feed::B::template fragment<false>(right, b, col + 8 * n, k);
      ZF_DEVICE_UNROLL(kRowFragments)
      for (int r = 0; r < kRowFragments; ++r) {
        mma<T>(sums[r][n], left[r], {{right[0], right[1]}});
        mma<T>(sums[r][n + 1], left[r], {{right[2], right[3]}});
      }
    }
  }
}

template <class C>
struct alignas(2 * sizeof(C)) Two {
  C v[2];
};

/// Two neighbours of C, of which the second may lie outside.
template <class C, class T>
__device__ void store_two(const TileCall<T>& call, int row, int col, float first, float second) {
  C* to = reinterpret_cast<C*>(call.c) + static_cast<std::int64_t>(row) * call.c_stride + col;
  const bool both = col + 1 < call.n;
  first = call.alpha * first;
  second = call.alpha * second;
  if (call.bias != nullptr) {
    const C* bias = reinterpret_cast<const C*>(call.bias) + col;
    first = first + to_float(bias[0]);
    if (both) second = second + to_float(bias[1]);
  }
  if (call.accumulate) {
    first = to_float(to[0]) + first;
    if (both) second = to_float(to[1]) + second;
  }
  if (both && reinterpret_cast<std::uintptr_t>(to) % sizeof(Two<C>) == 0) {
    *reinterpret_cast<Two<C>*>(to) = {{rounded_to<C>(first), rounded_to<C>(second)}};
    return;
  }
  to[0] = rounded_to<C>(first);
  if (both) to[1] = rounded_to<C>(second);
}

template <class C, class T>
__device__ void store_tile_sums(const TileCall<T>& call, int row, int col, const Sums& sums) {
  const int group = lane_of_warp() / 4, in_group = lane_of_warp() % 4;
  ZF_DEVICE_UNROLL(kRowFragments)
  for (int r = 0; r < kRowFragments; ++r) {
    ZF_DEVICE_UNROLL(kColFragments)
    for (int n = 0; n < kColFragments; ++n) {
      ZF_DEVICE_UNROLL(2)
      for (int half = 0; half < 2; ++half) {
        const int at_row = row + 16 * r + 8 * half + group, at_col = col + 8 * n + 2 * in_group;
        if (at_row >= call.m || at_col >= call.n) continue;
        store_two<C>(call, at_row, at_col, sums[r][n].v[2 * half], sums[r][n].v[2 * half + 1]);
      }
    }
  }
}

template <class T, bool kATransposed, bool kBAlongK>
__global__ void __launch_bounds__(kTileThreads, 2) tile_kernel(const __grid_constant__ TileCalls<T> all) {
  using Feed = TileFeed<T, kATransposed, kBAlongK>;
  __shared__ int tiles[kMaxCalls];
  __shared__ TileCall<T> call;
  if (static_cast<int>(threadIdx.x) < all.count) tiles[threadIdx.x] = num_tiles<kATransposed>(all.calls[threadIdx.x]);
  __syncthreads();
  int product = 0, mine = static_cast<int>(blockIdx.x);
  while (product < all.count && mine >= tiles[product]) mine -= tiles[product++];
  if (product == all.count) return;  // products have fewer rows than they could have
  if (threadIdx.x == 0) call = in_range<kATransposed>(all.calls[product]);
  __syncthreads();
  const int down = tiles_of(call.m, kTileRows);  // blocks go down the rows first
  Feed feed{call, mine % down * kTileRows, mine / down * kTileCols};
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int row = warp / kWarpsAcross * kWarpRows, col = warp % kWarpsAcross * kWarpCols;

  int steps = 0;
  for (int part = 0; part < kMaxTileParts; ++part) steps += (call.k_of[part] + kTileDepth - 1) / kTileDepth;
  Sums sums = {};
  for (int step = 0; step < kTileStages - 1; ++step) feed.queue_next();
  for (int step = 0; step < steps; ++step) {
    wait_for_groups<kTileStages - 2>();
    __syncthreads();  // all have this step's tiles, and are done with those that the next copies overwrite
    feed.queue_next();
    multiply_step<Feed, T>(feed.a_of(step), feed.b_of(step), row, col, sums);
  }
  wait_for_copies();
  if (call.c_dtype == DType::kF32) {
    store_tile_sums<float>(call, feed.row + row, feed.col + col, sums);
  } else {
    store_tile_sums<T>(call, feed.row + row, feed.col + col, sums);
  }
}

template <class T>
TileCall<T> call_of(const TileProduct& product) {
  const GemmProblem& problem = *product.problem;
  TileCall<T> call{};
  call.a = static_cast<const T*>(problem.a.data);
  call.a_stride = static_cast<int>(problem.a.stride);
  for (std::size_t part = 0; part < product.right.parts.size(); ++part) {
    call.b[part] = static_cast<const T*>(product.right.parts[part].data);
    call.b_stride[part] = static_cast<int>(product.right.parts[part].stride);
    call.k_of[part] = static_cast<int>(product.right.k_of(part));
  }
  call.c = static_cast<std::byte*>(problem.c.data);
  call.c_stride = static_cast<int>(problem.c.stride);
  call.c_dtype = problem.c.dtype;
  call.bias = static_cast<const std::byte*>(problem.bias);
  call.row_range = problem.row_range;
  call.accumulate = problem.accumulate;
  call.alpha = problem.alpha;
  call.m = static_cast<int>(problem.c.rows);
  call.n = static_cast<int>(problem.c.cols);
  return call;
}

/// The most blocks that products need. Products with parts of the same rows have as many tiles down as all these rows
/// together. Each of these products has one more tile down, for the part's end. The tiles across count as those of the
/// widest part.
class BlockCount {
 public:
  void add(const GemmProblem& problem) {
    const Matrix& c = problem.c;
    const int down = tiles_of(static_cast<int>(c.rows), kTileRows),
              across = tiles_of(static_cast<int>(c.cols), kTileCols);
    if (problem.row_range == nullptr || problem.a_transposed) {
      blocks_ += std::int64_t{down} * across;
      return;
    }
    blocks_ += across;
    rows_ = std::max(rows_, c.rows);
    across_[problem.row_range] += across;
  }

  unsigned num_blocks() const {
    std::int64_t widest = 0;
    for (const auto& [range, across] : across_) widest = std::max(widest, across);
    return num_blocks_for(blocks_ + rows_ / kTileRows * widest, 1);
  }

 private:
  std::int64_t blocks_ = 0, rows_ = 0;
  std::map<const std::int32_t*, std::int64_t> across_;  // of all products with this part
};

template <class T, bool kATransposed, bool kBAlongK>
void launch_tiles(const Context& ctx, std::span<const TileProduct* const> products) {
  constexpr std::size_t kSharedBytes = TileFeed<T, kATransposed, kBAlongK>::kStageBytes * kTileStages;
  allow_dynamic_shared<tile_kernel<T, kATransposed, kBAlongK>, kSharedBytes>("gemm");
  for (std::size_t begin = 0; begin < products.size(); begin += kMaxCalls) {
    TileCalls<T> all{};
    BlockCount blocks;
    for (const TileProduct* product :
         products.subspan(begin, std::min<std::size_t>(kMaxCalls, products.size() - begin))) {
      all.calls[all.count++] = call_of<T>(*product);
      blocks.add(*product->problem);
    }
    launch("gemm", stream_of(ctx), {blocks.num_blocks(), kTileThreads, kSharedBytes},
           tile_kernel<T, kATransposed, kBAlongK>, all);
  }
}

bool is_in_pieces(const ConstMatrix& matrix) {
  return reinterpret_cast<std::uintptr_t>(matrix.data) % 16 == 0 && matrix.stride % 8 == 0 && matrix.cols % 8 == 0 &&
         matrix.stride <= INT32_MAX && matrix.rows <= INT32_MAX / 2 && matrix.cols <= INT32_MAX / 2;
}

bool is_empty(const TileProduct& product) { return product.problem->c.rows == 0 || product.problem->c.cols == 0; }

/// Returns the products whose operands have this layout.
std::vector<const TileProduct*> lying(std::span<const TileProduct> products, DType dtype, bool a_transposed,
                                      SourceRows rows) {
  std::vector<const TileProduct*> found;
  for (const TileProduct& product : products) {
    const GemmProblem& problem = *product.problem;
    if (problem.a.dtype == dtype && problem.a_transposed == a_transposed && product.right.rows == rows &&
        !is_empty(product))
      found.push_back(&product);
  }
  return found;
}

template <class T>
void launch_all(const Context& ctx, std::span<const TileProduct> products, DType dtype) {
  launch_tiles<T, false, false>(ctx, lying(products, dtype, false, SourceRows::kAlongN));
  launch_tiles<T, false, true>(ctx, lying(products, dtype, false, SourceRows::kAlongK));
  launch_tiles<T, true, true>(ctx, lying(products, dtype, true, SourceRows::kAlongK));
}

}  // namespace

bool can_tile(const TileProduct& product) {
  const GemmProblem& problem = *product.problem;
  const auto& parts = product.right.parts;
  if (problem.a.dtype == DType::kF32 || parts.size() > kMaxTileParts) return false;
  if (problem.c.dtype != DType::kF32 && problem.c.dtype != problem.a.dtype) return false;
  if (problem.a_transposed && product.right.rows == SourceRows::kAlongN) return false;
  if (problem.a_transposed && problem.row_range != nullptr && parts.size() > 1) return false;
  // A's columns of a part begin where those of the part before it end.
  for (std::size_t part = 0; part < parts.size() && !problem.a_transposed; ++part) {
    if (product.right.k_of(part) % 8 != 0) return false;
  }
  return is_in_pieces(problem.a) && std::ranges::all_of(parts, is_in_pieces) && problem.c.stride <= INT32_MAX;
}

void tile_gemm(const Context& ctx, std::span<const TileProduct> products) {
  launch_all<bf16>(ctx, products, DType::kBF16);
  launch_all<f16>(ctx, products, DType::kF16);
}

}  // namespace zerofleet::cuda
