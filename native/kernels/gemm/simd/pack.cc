#include "kernels/gemm/simd/pack.h"

#include <stddef.h>

#include "kernels/common/simd/elements.h"
#include "kernels/gemm/simd/gemm.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

ZF_INLINE void store_words(uint32_t* p, vu x) { *reinterpret_cast<vu_unaligned*>(p) = x; }

// Readers of the words of one step from a source. `Source::along_rows` takes kLanes words of one step (neighbours in n
// of a source whose rows are k); `Source::along_cols` takes kLanes words of one row (neighbours in k).
struct BF16Pairs {
  using Element = uint16_t;
  static constexpr int kPerWord = 2;
  ZF_INLINE vu along_rows(const uint16_t* p, int64_t stride, bool has_second) {
    return has_second ? widen(p) | widen(p + stride) << 16 : widen(p);
  }
  ZF_INLINE vu along_cols(const uint16_t* p) {
    vu words;
    __builtin_memcpy(&words, p, sizeof words);
    return words;
  }
};

template <class T>
struct Widened {
  using Element = T;
  static constexpr int kPerWord = 1;
  ZF_INLINE vu along_rows(const T* p, int64_t, bool) { return as_bits(load(p)); }
  ZF_INLINE vu along_cols(const T* p) { return as_bits(load(p)); }
};

/// The words of one step of a whole panel.
template <class Source>
ZF_INLINE void pack_step(const typename Source::Element* row, int64_t stride, bool has_second, uint32_t* target) {
  for (int i = 0; i < kPanel; i += kLanes) store_words(target + i, Source::along_rows(row + i, stride, has_second));
}

#if defined(__AVX512BF16__)
// A row of a panel is one register here, and two rows interleave with two permutations.
template <>
inline __attribute__((always_inline)) void pack_step<BF16Pairs>(const uint16_t* row, int64_t stride, bool has_second,
                                                                uint32_t* target) {
  typedef uint16_t Row __attribute__((vector_size(64)));
  typedef Row UnalignedRow __attribute__((aligned(2), may_alias));
  Row low, high;
  for (int i = 0; i < 16; ++i) {
    low[2 * i] = static_cast<uint16_t>(i), low[2 * i + 1] = static_cast<uint16_t>(kPanel + i);
    high[2 * i] = static_cast<uint16_t>(16 + i), high[2 * i + 1] = static_cast<uint16_t>(kPanel + 16 + i);
  }
  const Row first = *reinterpret_cast<const UnalignedRow*>(row);
  const Row second = has_second ? *reinterpret_cast<const UnalignedRow*>(row + stride) : Row{};
  store_words(target, reinterpret_cast<vu>(__builtin_shuffle(first, second, low)));
  store_words(target + kLanes, reinterpret_cast<vu>(__builtin_shuffle(first, second, high)));
}
#endif

// Rows are read from left to right and written to all panels at once, which keeps to few pages of the source.
template <class Source>
void pack_k_rows_from(const PackArgs& args) {
  using Element = typename Source::Element;
  const auto* source = static_cast<const Element*>(args.source);
  const int64_t steps = (args.rows + Source::kPerWord - 1) / Source::kPerWord;
  const int64_t whole = args.cols / kPanel, rest = args.cols % kPanel;
  for (int64_t step = 0; step < steps; ++step) {
    const Element* row = source + step * Source::kPerWord * args.source_stride;
    const bool has_second = step * Source::kPerWord + 1 < args.rows;
    // Rows may be pages apart, where the hardware does not prefetch; an address beyond the source does no harm.
    __builtin_prefetch(row + 8 * args.source_stride);
    if (Source::kPerWord == 2) __builtin_prefetch(row + 9 * args.source_stride);
    uint32_t* target = args.target + step * kPanel;
    for (int64_t panel = 0; panel < whole; ++panel) {
      pack_step<Source>(row + panel * kPanel, args.source_stride, has_second, target + panel * args.target_stride);
    }
    if (rest == 0) continue;
    Element edge[2][kPanel] = {};
    const size_t bytes = static_cast<size_t>(rest) * sizeof(Element);
    __builtin_memcpy(edge[0], row + whole * kPanel, bytes);
    if (Source::kPerWord == 2 && has_second)
      __builtin_memcpy(edge[1], row + args.source_stride + whole * kPanel, bytes);
    pack_step<Source>(edge[0], kPanel, has_second, target + whole * args.target_stride);
  }
}

template <class Source>
ZF_INLINE vu words_of_row(const PackArgs& args, int64_t row, int64_t col) {
  using Element = typename Source::Element;
  constexpr int64_t kElements = kLanes * Source::kPerWord;
  if (row >= args.rows) return vu{};
  const Element* p = static_cast<const Element*>(args.source) + row * args.source_stride + col;
  if (col + kElements <= args.cols) return Source::along_cols(p);
  Element edge[kElements] = {};
  for (int64_t i = col; i < args.cols; ++i) edge[i - col] = p[i - col];
  return Source::along_cols(edge);
}

// Exchanges the off-diagonal blocks of kBlock × kBlock words, at every scale: after all scales the square is
// transposed.
template <int kBlock>
ZF_INLINE void transpose_scale(vu (&square)[kLanes]) {
  vi low{}, high{};
  for (int lane = 0; lane < kLanes; ++lane) {
    const bool upper = (lane & kBlock) != 0;
    low[lane] = upper ? kLanes + lane - kBlock : lane;
    high[lane] = upper ? kLanes + lane : lane + kBlock;
  }
  for (int i = 0; i < kLanes; ++i) {
    if ((i & kBlock) != 0) continue;
    const vu a = square[i], b = square[i + kBlock];
    square[i] = __builtin_shuffle(a, b, low);
    square[i + kBlock] = __builtin_shuffle(a, b, high);
  }
}

ZF_INLINE void transpose(vu (&square)[kLanes]) {
  transpose_scale<1>(square);
  transpose_scale<2>(square);
#if defined(__AVX2__)
  transpose_scale<4>(square);
#endif
#if defined(__AVX512F__)
  transpose_scale<8>(square);
#endif
}

template <class Source>
void pack_k_cols_from(const PackArgs& args) {
  const int64_t steps = (args.cols + Source::kPerWord - 1) / Source::kPerWord;
  const int64_t padded_rows = (args.rows + kPanel - 1) / kPanel * kPanel;
  for (int64_t row = 0; row < padded_rows; row += kLanes) {
    uint32_t* panel = args.target + row / kPanel * args.target_stride + row % kPanel;
    for (int64_t step = 0; step < steps; step += kLanes) {
      vu square[kLanes];
      for (int i = 0; i < kLanes; ++i) square[i] = words_of_row<Source>(args, row + i, step * Source::kPerWord);
      transpose(square);
      const int64_t count = steps - step < kLanes ? steps - step : kLanes;
      for (int64_t i = 0; i < count; ++i) store_words(panel + (step + i) * kPanel, square[i]);
    }
  }
}

template <class Source>
void copy_words_from(const PackArgs& args) {
  const int64_t steps = (args.cols + Source::kPerWord - 1) / Source::kPerWord;
  for (int64_t row = 0; row < args.rows; ++row) {
    uint32_t* target = args.target + row * args.target_stride;
    for (int64_t step = 0; step < steps; step += kLanes) {
      const vu words = words_of_row<Source>(args, row, step * Source::kPerWord);
      if (step + kLanes <= steps) {
        store_words(target + step, words);
      } else {
        for (int64_t i = step; i < steps; ++i) target[i] = words[i - step];
      }
    }
  }
}

}  // namespace

void pack_k_rows(const PackArgs& args) {
  if (args.pairs) return pack_k_rows_from<BF16Pairs>(args);
  with_model_element(args.source_dtype, [&]<class T>(T*) { pack_k_rows_from<Widened<T>>(args); });
}

void pack_k_cols(const PackArgs& args) {
  if (args.pairs) return pack_k_cols_from<BF16Pairs>(args);
  with_model_element(args.source_dtype, [&]<class T>(T*) { pack_k_cols_from<Widened<T>>(args); });
}

void copy_words(const PackArgs& args) {
  if (args.pairs) return copy_words_from<BF16Pairs>(args);
  with_model_element(args.source_dtype, [&]<class T>(T*) { copy_words_from<Widened<T>>(args); });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
