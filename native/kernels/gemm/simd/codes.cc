#include "kernels/gemm/simd/codes.h"

#include <string.h>

#include "kernels/common/simd/elements.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

static_assert(kPanel % kLanes == 0 && kPanel / 2 % kLanes == 0);

struct Int8Levels {
  static constexpr int64_t kRowBytes = code_row_bytes(QuantFormat::kInt8);
  /// Of the codes [i, i + kLanes) of a row.
  ZF_INLINE vf at(const uint8_t* row, int i) {
#if defined(__AVX512F__)
    // The unmasked forms trip a false warning of GCC 12, and its vectors are converted element by element.
    const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + i));
    return __builtin_convertvector(reinterpret_cast<vi>(_mm512_maskz_cvtepi8_epi32(0xffff, codes)), vf);
#elif defined(__AVX2__)
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(row + i))));
#else
    vf levels;
    for (int lane = 0; lane < kLanes; ++lane) levels[lane] = static_cast<float>(static_cast<int8_t>(row[i + lane]));
    return levels;
#endif
  }
};

struct Nf4Levels {
  static constexpr int64_t kRowBytes = code_row_bytes(QuantFormat::kNf4);
  ZF_INLINE vf at(const uint8_t* row, int i) {
    const uint8_t* bytes = row + i % (kPanel / 2);
    const int shift = i < kPanel / 2 ? 0 : 4;
    alignas(64) constexpr float levels[16] = {nf4_level(0),  nf4_level(1),  nf4_level(2),  nf4_level(3),
                                              nf4_level(4),  nf4_level(5),  nf4_level(6),  nf4_level(7),
                                              nf4_level(8),  nf4_level(9),  nf4_level(10), nf4_level(11),
                                              nf4_level(12), nf4_level(13), nf4_level(14), nf4_level(15)};
#if defined(__AVX512F__)
    const __m128i both = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
    const vi codes = reinterpret_cast<vi>(_mm512_maskz_cvtepu8_epi32(0xffff, both));
    return __builtin_shuffle(load(levels), codes >> shift);  // which reads the low four bits of an index
#elif defined(__AVX2__)
    const __m256i codes =
        _mm256_srli_epi32(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes))), shift);
    // The permutations read the low three bits of an index, and the blend the fourth one.
    const vf low = _mm256_permutevar8x32_ps(load(levels), codes),
             high = _mm256_permutevar8x32_ps(load(levels + 8), codes);
    return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(codes, 28)));
#else
    vf found;
    for (int lane = 0; lane < kLanes; ++lane) found[lane] = levels[bytes[lane] >> shift & 15];
    return found;
#endif
  }
};

/// A bfloat16 whose value is neither NaN nor subnormal: its rounding needs no check.
struct PlainBf16 {};

/// Rounded to the type of the pointer as dequantize() does it.
ZF_INLINE vf rounded(float*, vf values) { return values; }
ZF_INLINE vf rounded(PlainBf16*, vf values) {
  const vu bits = as_bits(values);
  return from_bits((bits + 0x7fffU + ((bits >> 16) & 1U)) & 0xffff0000U);
}
template <class T>
ZF_INLINE vf rounded(T*, vf values) {
  T elements[kLanes];
  store(elements, values);
  return load(elements);
}

/// Calls body with a null pointer to the type whose rounding the elements of a matrix need.
template <class Body>
ZF_INLINE void with_rounding(const RestoreArgs& args, const Body& body) {
  if (args.dtype == DType::kBF16 && !args.specials) return body(static_cast<PlainBf16*>(nullptr));
  with_element(args.dtype, body);
}

/// Scales of the 32 codes of a row.
struct RowScales {
  vf values[kPanel / kLanes];
};

/// The scales of columns, for rows that are one k.
ZF_INLINE RowScales of_columns(const float* scales) {
  RowScales row;
  for (int i = 0; i < kPanel; i += kLanes) row.values[i / kLanes] = load(scales + i);
  return row;
}

ZF_INLINE RowScales of_k(float scale) {
  RowScales row;
  for (vf& values : row.values) values = set1(scale);
  return row;
}

/// The scales and codes of a block.
struct BlockParts {
  const float* scales;
  const uint8_t* codes;
};

/// body(parts, rows, target) for each block of the rows.
template <bool kScalesOfK, class Body>
ZF_INLINE void for_blocks(const RestoreArgs& args, const Body& body) {
  const int64_t stride = code_block_bytes(args.format, kScalesOfK);
  const uint8_t* block = args.block;
  uint32_t* target = args.target;
  for (int64_t left = args.num_rows; left > 0;
       left -= kCodeRows, block += stride, target += kCodeRows * (args.pairs ? kPanel / 2 : kPanel)) {
    const BlockParts parts{reinterpret_cast<const float*>(block),
                           block + num_scales(kScalesOfK) * static_cast<int64_t>(sizeof(float))};
    body(parts, left < kCodeRows ? left : kCodeRows, target);
  }
}

template <class Levels, class T, bool kScalesOfK>
void restore_words(const RestoreArgs& args) {
  for_blocks<kScalesOfK>(args, [](const BlockParts& block, int64_t rows, uint32_t* target) ZF_INLINE_LAMBDA {
    const RowScales columns = of_columns(block.scales);
    const uint8_t* codes = block.codes;
    for (int64_t row = 0; row < rows; ++row, codes += Levels::kRowBytes, target += kPanel) {
      const RowScales scales = kScalesOfK ? of_k(block.scales[row]) : columns;
      for (int i = 0; i < kPanel; i += kLanes)
        store(reinterpret_cast<float*>(target) + i,
              rounded(static_cast<T*>(nullptr), Levels::at(codes, i) * scales.values[i / kLanes]));
    }
  });
}

#if defined(__AVX512BF16__)
/// The scales of the 16 words of a half: each twice.
ZF_INLINE RowScales twice(vf scales) {
  const vi low{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7};
  return {{__builtin_shuffle(scales, low), __builtin_shuffle(scales, low + 8)}};
}

/// The scales of words of these two k.
ZF_INLINE RowScales of_two_k(const float* scales) {
  long long both;
  memcpy(&both, scales, sizeof both);
  const vf pairs = reinterpret_cast<vf>(_mm512_set1_epi64(both));
  return {{pairs, pairs}};
}

/// The 16 words of half a step. The instruction that rounds takes subnormals for zero, also those that would be rounded
/// to the least normal number.
template <class Levels, bool kSpecials>
ZF_INLINE void restore_half(const uint8_t* codes, const RowScales& scales, uint32_t* target) {
  const vf first = Levels::at(codes, 0) * scales.values[0], second = Levels::at(codes, kLanes) * scales.values[1];
  if constexpr (kSpecials) {
    store(reinterpret_cast<Bf16*>(target), first);
    store(reinterpret_cast<Bf16*>(target) + kLanes, second);
  } else {
    *reinterpret_cast<vu_unaligned*>(target) = reinterpret_cast<vu>(_mm512_cvtne2ps_pbh(second, first));
  }
}

template <class Levels, bool kScalesOfK, bool kSpecials>
void restore_pairs(const RestoreArgs& args) {
  for_blocks<kScalesOfK>(args, [](const BlockParts& block, int64_t rows, uint32_t* target) ZF_INLINE_LAMBDA {
    const RowScales first = twice(load(block.scales)), second = twice(load(block.scales + kLanes));
    const uint8_t* codes = block.codes;
    for (int64_t row = 0; row < rows; row += 2, codes += 2 * Levels::kRowBytes, target += kPanel) {
      const RowScales of_k = of_two_k(block.scales + (kScalesOfK ? row : 0));
      restore_half<Levels, kSpecials>(codes, kScalesOfK ? of_k : first, target);
      restore_half<Levels, kSpecials>(codes + Levels::kRowBytes, kScalesOfK ? of_k : second, target + kLanes);
    }
  });
}
#endif

template <class Levels, bool kScalesOfK>
void restore(const RestoreArgs& args) {
#if defined(__AVX512BF16__)
  if (args.pairs && args.specials) return restore_pairs<Levels, kScalesOfK, true>(args);
  if (args.pairs) return restore_pairs<Levels, kScalesOfK, false>(args);
#endif
  with_rounding(args, [&]<class T>(T*) { restore_words<Levels, T, kScalesOfK>(args); });
}

/// The vectors of a panel's sums.
template <int kRows>
struct PanelSums {
  vf values[kRows][kPanel / kLanes];

  ZF_INLINE PanelSums of(const CodeProduct& product) {
    PanelSums sums;
    for (int row = 0; row < kRows; ++row)
      for (int i = 0; i < kPanel; i += kLanes) sums.values[row][i / kLanes] = load(product.sums + row * kPanel + i);
    return sums;
  }
  ZF_INLINE void put(const PanelSums& sums, const CodeProduct& product) {
    for (int row = 0; row < kRows; ++row)
      for (int i = 0; i < kPanel; i += kLanes) store(product.sums + row * kPanel + i, sums.values[row][i / kLanes]);
  }
};

template <class Levels, class T, int kRows>
void multiply_words(const CodeProduct& product) {
  using Sums = PanelSums<kRows>;
  Sums sums = Sums::of(product);
  const uint32_t* a = product.a;
  for_blocks<false>(product.panel, [&](const BlockParts& block, int64_t rows, uint32_t*) ZF_INLINE_LAMBDA {
    const RowScales scales = of_columns(block.scales);
    const uint8_t* codes = block.codes;
    for (int64_t row = 0; row < rows; ++row, codes += Levels::kRowBytes, ++a) {
      for (int i = 0; i < kPanel / kLanes; ++i) {
        const vf word = rounded(static_cast<T*>(nullptr), Levels::at(codes, i * kLanes) * scales.values[i]);
        for (int r = 0; r < kRows; ++r) {
          const vf factor = from_bits(vu{} + a[r * product.a_row_stride]);
          sums.values[r][i] = fma(factor, word, sums.values[r][i]);
        }
      }
    }
  });
  Sums::put(sums, product);
}

#if defined(__AVX512BF16__)
template <class Levels, int kRows>
void multiply_pairs(const CodeProduct& product) {
  using Sums = PanelSums<kRows>;
  Sums sums = Sums::of(product);
  const uint32_t* a = product.a;
  for_blocks<false>(product.panel, [&](const BlockParts& block, int64_t rows, uint32_t*) ZF_INLINE_LAMBDA {
    const RowScales halves[2] = {twice(load(block.scales)), twice(load(block.scales + kLanes))};
    const uint8_t* codes = block.codes;
    for (int64_t row = 0; row < rows; row += 2, ++a) {
      for (int half = 0; half < 2; ++half, codes += Levels::kRowBytes) {
        const __m512bh words = _mm512_cvtne2ps_pbh(Levels::at(codes, kLanes) * halves[half].values[1],
                                                   Levels::at(codes, 0) * halves[half].values[0]);
        for (int r = 0; r < kRows; ++r) {
          const __m512i pair = _mm512_set1_epi32(static_cast<int>(a[r * product.a_row_stride]));
          sums.values[r][half] = _mm512_dpbf16_ps(sums.values[r][half], reinterpret_cast<__m512bh>(pair), words);
        }
      }
    }
  });
  Sums::put(sums, product);
}
#endif

template <class Levels, int kRows>
void multiply(const CodeProduct& product) {
#if defined(__AVX512BF16__)
  if (product.panel.pairs) return multiply_pairs<Levels, kRows>(product);
#endif
  with_rounding(product.panel, [&]<class T>(T*) { multiply_words<Levels, T, kRows>(product); });
}

template <class Levels>
void multiply_of(const CodeProduct& product) {
  switch (product.rows) {
    case 1:
      return multiply<Levels, 1>(product);
    case 2:
      return multiply<Levels, 2>(product);
    case 3:
      return multiply<Levels, 3>(product);
    default:
      return multiply<Levels, kCodeProductRows>(product);
  }
}

template <class Levels>
void restore_of(const RestoreArgs& args) {
  args.scales_of_k ? restore<Levels, true>(args) : restore<Levels, false>(args);
}

}  // namespace

void restore_codes(const RestoreArgs& args) {
  args.format == QuantFormat::kNf4 ? restore_of<Nf4Levels>(args) : restore_of<Int8Levels>(args);
}

void multiply_codes(const CodeProduct& product) {
  product.panel.format == QuantFormat::kNf4 ? multiply_of<Nf4Levels>(product) : multiply_of<Int8Levels>(product);
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
