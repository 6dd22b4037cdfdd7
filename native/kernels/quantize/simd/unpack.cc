#include <string.h>

#include "kernels/common/simd/elements.h"
#include "kernels/quantize/simd/quantize.h"

// A block of nf4 has no more than 16 different elements. They are restored and rounded once, as a table in the
// registers, in which the 64 codes are then looked up.
namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

constexpr int kHalf = kQuantBlock / 2;  // the elements of the low halves of a block's bytes, and those of the high ones

#if defined(__AVX512BW__)
typedef uint8_t HalfCodes __attribute__((vector_size(kHalf)));
typedef uint8_t HalfCodesUnaligned __attribute__((vector_size(kHalf), aligned(1), may_alias));

/// Writes the elements of half a block.
template <class T>
ZF_INLINE void look_up(const T (&table)[16], HalfCodes codes, T* target) {
  if constexpr (sizeof(T) == 2) {
    typedef uint16_t Words __attribute__((vector_size(2 * kHalf)));
    Words words;
    memcpy(&words, table, sizeof table);
    memcpy(reinterpret_cast<uint8_t*>(&words) + sizeof table, table, sizeof table);
    words = __builtin_shuffle(words, __builtin_convertvector(codes, Words));
    memcpy(target, &words, sizeof words);
  } else {
    typedef uint8_t Quarter __attribute__((vector_size(kHalf / 2)));
    for (int i = 0; i < 2; ++i) {
      Quarter quarter;
      memcpy(&quarter, reinterpret_cast<const uint8_t*>(&codes) + i * kLanes, sizeof quarter);
      store(target + i * kLanes, __builtin_shuffle(load(table), __builtin_convertvector(quarter, vi)));
    }
  }
}

template <class T>
ZF_INLINE void look_up_block(const T (&table)[16], const uint8_t* codes, T* target) {
  const HalfCodes bytes = *reinterpret_cast<const HalfCodesUnaligned*>(codes);
  look_up(table, bytes & 15, target);
  look_up(table, bytes >> 4, target + kHalf);
}
#elif defined(__AVX2__)
/// Writes the elements of half a block.
template <class T>
ZF_INLINE void look_up(const T (&table)[16], __m256i codes, T* target) {
  if constexpr (sizeof(T) == 2) {  // the low bytes, the high bytes, and both together
    const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(table));
    const __m256i both = _mm256_permute4x64_epi64(
        _mm256_packus_epi16(_mm256_and_si256(words, _mm256_set1_epi16(255)), _mm256_srli_epi16(words, 8)), 0xd8);
    const __m256i low = _mm256_shuffle_epi8(_mm256_permute2x128_si256(both, both, 0x00), codes);
    const __m256i high = _mm256_shuffle_epi8(_mm256_permute2x128_si256(both, both, 0x11), codes);
    const __m256i first = _mm256_unpacklo_epi8(low, high), second = _mm256_unpackhi_epi8(low, high);
    auto* to = reinterpret_cast<__m256i*>(target);
    _mm256_storeu_si256(to, _mm256_permute2x128_si256(first, second, 0x20));
    _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(first, second, 0x31));
  } else {
    const vf below = load(table), above = load(table + 8);
    alignas(32) uint8_t bytes[kHalf];
    _mm256_store_si256(reinterpret_cast<__m256i*>(bytes), codes);
    for (int i = 0; i < kHalf; i += kLanes) {
      const __m256i index = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes + i)));
      const vf low = _mm256_permutevar8x32_ps(below, index), high = _mm256_permutevar8x32_ps(above, index);
      store(target + i, _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(index, 28))));
    }
  }
}

template <class T>
ZF_INLINE void look_up_block(const T (&table)[16], const uint8_t* codes, T* target) {
  const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes)), low = _mm256_set1_epi8(15);
  look_up(table, _mm256_and_si256(bytes, low), target);
  look_up(table, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), low), target + kHalf);
}
#else
template <class T>
ZF_INLINE void look_up_block(const T (&table)[16], const uint8_t* codes, T* target) {
  for (int i = 0; i < kHalf; ++i) {
    target[i] = table[codes[i] & 15];
    target[i + kHalf] = table[codes[i] >> 4];
  }
}
#endif

template <class T>
struct Nf4Blocks {
  ZF_INLINE void unpack(const uint8_t* codes, float scale, T* target) {
    alignas(64) float levels[16];
    for (int i = 0; i < 16; ++i) levels[i] = nf4_level(i);
    alignas(64) T table[16];
    for (int i = 0; i < 16; i += kLanes) store(table + i, load(levels + i) * scale);
    look_up_block(table, codes, target);
  }
};

template <class T>
struct Int8Blocks {
  ZF_INLINE void unpack(const uint8_t* codes, float scale, T* target) {
    float levels[kQuantBlock];
    for (int i = 0; i < kQuantBlock; ++i) levels[i] = static_cast<float>(static_cast<int8_t>(codes[i]));
    for (int i = 0; i < kQuantBlock; i += kLanes) store(target + i, load(levels + i) * scale);
  }
};

template <class Blocks, class T>
void unpack_rows_of(const UnpackArgs& args) {
  const int64_t blocks_of_row = quant_blocks_of_row(args.source.cols), bytes = code_bytes_of_block(args.source.format);
  // A tile has little of each row, and rows are too far apart for the hardware to see the next ones coming. An address
  // beyond the matrix does no harm.
  const int64_t ahead = args.cols < args.source.cols ? 8 * blocks_of_row * bytes : 0;
  for (int64_t row = 0; row < args.num_rows; ++row) {
    int64_t block = (args.row + row) * blocks_of_row + args.block;
    T* target = row_of<T>(args.target, row);
    int64_t left = args.cols;
    for (; left >= kQuantBlock; left -= kQuantBlock, ++block, target += kQuantBlock) {
      __builtin_prefetch(args.source.codes + block * bytes + ahead);
      Blocks::unpack(args.source.codes + block * bytes, scale_at(args.source, block), target);
    }
    if (left == 0) continue;
    T last[kQuantBlock];
    Blocks::unpack(args.source.codes + block * bytes, scale_at(args.source, block), last);
    memcpy(target, last, static_cast<size_t>(left) * sizeof(T));
  }
}

}  // namespace

void unpack_rows(const UnpackArgs& args) {
  with_element(args.dtype, [&]<class T>(T*) {
    if (args.source.format == QuantFormat::kNf4) return unpack_rows_of<Nf4Blocks<T>, T>(args);
    unpack_rows_of<Int8Blocks<T>, T>(args);
  });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
