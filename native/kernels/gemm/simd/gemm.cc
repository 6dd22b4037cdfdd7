#include "kernels/gemm/simd/gemm.h"

#include "kernels/common/simd/elements.h"

// The heart of all matrix products. A tile of C (kTileRows × kTileCols) stays in registers over all steps. Each step
// loads kTileCols words of B, broadcasts one word of A per row and adds the outer product.
namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

#if defined(__AVX512F__)
constexpr int kTileRows = 8;  // 16 accumulators of 32 registers
#else
constexpr int kTileRows = 6;  // 12 accumulators of 16 registers
#endif
constexpr int kDirectRows = kTileRows - 2;  // fewer rows pass their sums through memory
constexpr int kTileVectors = 2;
constexpr int kTileCols = kTileVectors * kLanes;
static_assert(kPanel % kTileCols == 0);
// One or two rows take wider tiles: two vectors would wait for their own sums.
constexpr int kFewRows = 2;
constexpr int kWideVectors = kPanel / kLanes < 4 ? kPanel / kLanes : 4;

struct Tile {
  const uint32_t* a;
  const uint32_t* b;
  int64_t steps;
  int64_t col;  // of the tile's first column in C
  int64_t row;
};

// kWords: words of A for one of B. part(b, i): what the i-th of them is multiplied with.
struct DotF32 {
  static constexpr int kWords = 1;
  ZF_INLINE vu part(vu b, int) { return b; }
  ZF_INLINE vf add(vf sum, uint32_t a, vu b) {
    float value;
    __builtin_memcpy(&value, &a, 4);
    return fma(set1(value), from_bits(b), sum);
  }
};

struct DotWidened : DotF32 {
  static constexpr int kWords = 2;
  ZF_INLINE vu part(vu b, int i) { return i == 0 ? b << 16 : b & 0xffff0000U; }
};

#if defined(__AVX512BF16__)
struct DotPairs {
  static constexpr int kWords = 1;
  ZF_INLINE vu part(vu b, int) { return b; }
  ZF_INLINE vf add(vf sum, uint32_t a, vu b) {
    const __m512i pair = _mm512_set1_epi32(static_cast<int>(a));
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(pair), reinterpret_cast<__m512bh>(b));
  }
};
#endif

ZF_INLINE int lanes_left(int64_t left) { return static_cast<int>(left < 0 ? 0 : left > kLanes ? kLanes : left); }

template <int kRows, int kVectors>
using Sums = vf[kRows][kVectors];

template <int kValue>
struct Index {
  static constexpr int value = kValue;
};

/// body(Index<0>) … body(Index<kEnd − 1>). Templates unroll the loops over a tile's sums, not the optimizer. With one
/// index that is not a constant, all sums would live in memory.
template <int kEnd, int kBegin = 0, class Body>
ZF_INLINE void unroll(const Body& body) {
  if constexpr (kBegin < kEnd) {
    body(Index<kBegin>{});
    unroll<kEnd, kBegin + 1>(body);
  }
}

/// body(row, vector) for every vector of a tile.
template <int kRows, int kVectors, class Body>
ZF_INLINE void for_sums(const Body& body) {
  unroll<kRows>([&](auto r) ZF_INLINE_LAMBDA { unroll<kVectors>([&](auto v) ZF_INLINE_LAMBDA { body(r, v); }); });
}

// A tile with fewer than kDirectRows rows, or with columns beyond the last, passes its sums through memory to
// load_rows() and store_rows(). Such tiles are rare. Unrolled copies of that code for every number of rows and type
// would take most of the time to compile the kernels.

[[gnu::noinline]] void load_rows(const GemmBlock& block, const Tile& tile, int rows, int vectors, vf* sums) {
  with_model_element(block.c_dtype, [&]<class T>(T*) {
    for (int row = 0; row < rows; ++row) {
      const T* c = static_cast<const T*>(block.c) + (tile.row + row) * block.c_stride + tile.col;
      for (int v = 0; v < vectors; ++v) {
        const int lanes = lanes_left(block.cols - tile.col - v * kLanes);
        sums[row * vectors + v] = lanes == kLanes ? load(c + v * kLanes) : load_first(c + v * kLanes, lanes);
      }
    }
  });
}

[[gnu::noinline]] void store_rows(const GemmBlock& block, const Tile& tile, int rows, int vectors, const vf* sums) {
  with_model_element(block.c_dtype, [&]<class T>(T*) {
    for (int row = 0; row < rows; ++row) {
      T* c = static_cast<T*>(block.c) + (tile.row + row) * block.c_stride + tile.col;
      for (int v = 0; v < vectors; ++v) {
        const int lanes = lanes_left(block.cols - tile.col - v * kLanes);
        if (lanes == kLanes) {
          store(c + v * kLanes, sums[row * vectors + v]);
        } else {
          store_first(c + v * kLanes, sums[row * vectors + v], lanes);
        }
      }
    }
  });
}

template <int kRows, int kVectors>
ZF_INLINE void load_tile(const GemmBlock& block, const Tile& tile, Sums<kRows, kVectors>& sum) {
  const int64_t stride = block.c_stride, left = block.cols - tile.col;
  if (kRows < kDirectRows || left < kVectors * kLanes) {
    vf rows[kRows][kVectors];
    load_rows(block, tile, kRows, kVectors, rows[0]);
    for_sums<kRows, kVectors>([&](auto r, auto v) ZF_INLINE_LAMBDA { sum[r.value][v.value] = rows[r.value][v.value]; });
    return;
  }
  with_model_element(block.c_dtype, [&]<class T>(T*) ZF_INLINE_LAMBDA {
    const T* c = static_cast<const T*>(block.c) + tile.row * stride + tile.col;
    for_sums<kRows, kVectors>([&](auto r, auto v) ZF_INLINE_LAMBDA {
      sum[r.value][v.value] = load(c + r.value * stride + v.value * kLanes);
    });
  });
}

template <int kRows, int kVectors>
ZF_INLINE void store_tile(const GemmBlock& block, const Tile& tile, const Sums<kRows, kVectors>& sum) {
  const int64_t stride = block.c_stride, left = block.cols - tile.col;
  if (kRows < kDirectRows || left < kVectors * kLanes) {
    vf rows[kRows][kVectors];
    for_sums<kRows, kVectors>([&](auto r, auto v) ZF_INLINE_LAMBDA { rows[r.value][v.value] = sum[r.value][v.value]; });
    store_rows(block, tile, kRows, kVectors, rows[0]);
    return;
  }
  with_model_element(block.c_dtype, [&]<class T>(T*) ZF_INLINE_LAMBDA {
    T* c = static_cast<T*>(block.c) + tile.row * stride + tile.col;
    for_sums<kRows, kVectors>([&](auto r, auto v) ZF_INLINE_LAMBDA {
      store(c + r.value * stride + v.value * kLanes, sum[r.value][v.value]);
    });
  });
}

template <int kRows, int kVectors, class T>
ZF_INLINE void add_bias(const GemmBlock& block, const Tile& tile, const T* bias, Sums<kRows, kVectors>& sum) {
  unroll<kVectors>([&](auto v) ZF_INLINE_LAMBDA {
    const int64_t col = tile.col + v.value * kLanes, left = block.cols - col;
    const vf values = left >= kLanes ? load(bias + col) : load_first(bias + col, lanes_left(left));
    unroll<kRows>([&](auto r) ZF_INLINE_LAMBDA { sum[r.value][v.value] += values; });
  });
}

template <class Dot, int kRows, int kVectors = kTileVectors>
void run_tile(const GemmBlock& block, const Tile& tile) {
  Sums<kRows, kVectors> sum{};
  if (block.accumulate) load_tile<kRows, kVectors>(block, tile, sum);
  const uint32_t* a = tile.a;
  const uint32_t* b = tile.b;
  const int64_t row_stride = block.a_row_stride, step_stride = block.a_step_stride;
  for (int64_t step = tile.steps; step > 0; --step) {
    vu column[kVectors];
    unroll<kVectors>([&](auto v) ZF_INLINE_LAMBDA {
      column[v.value] = *reinterpret_cast<const vu_unaligned*>(b + v.value * kLanes);
    });
    unroll<Dot::kWords>([&](auto i) ZF_INLINE_LAMBDA {
      vu part[kVectors];
      unroll<kVectors>([&](auto v) ZF_INLINE_LAMBDA { part[v.value] = Dot::part(column[v.value], i.value); });
      for_sums<kRows, kVectors>([&](auto r, auto v) ZF_INLINE_LAMBDA {
        sum[r.value][v.value] = Dot::add(sum[r.value][v.value], a[r.value * row_stride], part[v.value]);
      });
      a += step_stride;
    });
    b += kPanel;
  }
  if (block.alpha != 1) {
    for_sums<kRows, kVectors>([&](auto r, auto v) ZF_INLINE_LAMBDA { sum[r.value][v.value] *= set1(block.alpha); });
  }
  if (block.bias != nullptr) {
    with_model_element(block.bias_dtype, [&]<class T>(T*) ZF_INLINE_LAMBDA {
      add_bias<kRows, kVectors>(block, tile, static_cast<const T*>(block.bias), sum);
    });
  }
  store_tile<kRows, kVectors>(block, tile, sum);
}

template <class Dot>
void run_rows(const GemmBlock& block, const Tile& tile, int64_t rows) {
  switch (rows) {
    case 1:
      return run_tile<Dot, 1>(block, tile);
    case 2:
      return run_tile<Dot, 2>(block, tile);
    case 3:
      return run_tile<Dot, 3>(block, tile);
    case 4:
      return run_tile<Dot, 4>(block, tile);
    case 5:
      return run_tile<Dot, 5>(block, tile);
#if defined(__AVX512F__)
    case 6:
      return run_tile<Dot, 6>(block, tile);
    case 7:
      return run_tile<Dot, 7>(block, tile);
#endif
    default:
      return run_tile<Dot, kTileRows>(block, tile);
  }
}

struct StepRange {
  int64_t begin, end;
};

/// The steps that can change a tile of `rows` rows from `row` on.
ZF_INLINE StepRange steps_of(const GemmBlock& block, int64_t row, int64_t rows) {
  const int64_t per_step = block.pairs ? 2 : 1;
  StepRange range{0, block.steps};
  if (block.left_out == Triangle::kStepsAbove) {
    const int64_t end = (block.diagonal + row + rows + per_step - 1) / per_step;
    if (end < range.end) range.end = end;
  } else if (block.left_out == Triangle::kStepsBelow && row > block.diagonal) {
    range.begin = (row - block.diagonal) / per_step;
  }
  return range;
}

/// Number of rows of the tile at `row`. A tile stays within 32 rows, since packed ones are that many to a group. The
/// last rows of a group make two tiles of about equal height: a tile of one or two rows would wait for its own sums.
ZF_INLINE int64_t tile_rows(const GemmBlock& block, int64_t row) {
  const int64_t group = kPanel - row % kPanel, left = block.rows - row, most = left < group ? left : group;
  if (most <= kTileRows) return most;
  return most < 2 * kTileRows ? (most + 1) / 2 : kTileRows;
}

template <class Dot>
void run_few_rows(const GemmBlock& block) {
  for (int64_t col = 0; col < block.cols; col += kWideVectors * kLanes) {
    const Tile tile{block.a, block.b + col / kPanel * block.b_panel_stride + col % kPanel, block.steps, col, 0};
    block.rows == 1 ? run_tile<Dot, 1, kWideVectors>(block, tile) : run_tile<Dot, 2, kWideVectors>(block, tile);
  }
}

// A panel of B (at most a few hundred KiB) stays in cache while the tiles of A pass by it.
template <class Dot>
void run_block(const GemmBlock& block) {
  if constexpr (kWideVectors > kTileVectors) {
    if (block.rows <= kFewRows && block.left_out == Triangle::kNone) return run_few_rows<Dot>(block);
  }
  for (int64_t col = 0; col < block.cols; col += kTileCols) {
    const uint32_t* b = block.b + col / kPanel * block.b_panel_stride + col % kPanel;
    for (int64_t row = 0, rows = 0; row < block.rows; row += rows) {
      rows = tile_rows(block, row);
      if (block.left_out == Triangle::kColsAbove && col >= block.diagonal + row + rows) continue;
      const uint32_t* a = block.a + row / kPanel * block.a_group_stride + row % kPanel * block.a_row_stride;
      const StepRange steps = steps_of(block, row, rows);
      const Tile tile{a + steps.begin * Dot::kWords * block.a_step_stride, b + steps.begin * kPanel,
                      steps.end - steps.begin, col, row};
      run_rows<Dot>(block, tile, rows);
    }
  }
}

}  // namespace

void gemm_block(const GemmBlock& block) {
#if defined(__AVX512BF16__)
  if (block.pairs && !block.widened) return run_block<DotPairs>(block);
#endif
  block.widened ? run_block<DotWidened>(block) : run_block<DotF32>(block);
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
