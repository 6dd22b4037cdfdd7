#include "kernels/flat/simd/block_stats.h"

#include "kernels/common/simd/block_sums.h"
#include "kernels/common/simd/elements.h"
#include "kernels/common/simd/stream.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

ZF_INLINE vi larger(vi a, vi b) { return a > b ? a : b; }

template <class Element>
ZF_INLINE BlockStats stats_of(const Element* values, int64_t numel) {
  SquareSums sums;
  vi largest{};  // bits of magnitudes: they order as integers, and a NaN above infinity
  for (int64_t i = 0; i < numel; i += 32) {
    __builtin_prefetch(reinterpret_cast<const char*>(values + i) + 512, 0, 3);
    __builtin_prefetch(reinterpret_cast<const char*>(values + i) + 576, 0, 3);
    alignas(64) float wide[32];
    for (int j = 0; j < 32; j += kLanes) {
      const vf x = load(values + i + j);
      largest = larger(largest, reinterpret_cast<vi>(x) & 0x7fffffff);
      store(wide + j, x);
    }
    add_squares_of_32(sums, wide);
  }
  int32_t bits = 0;
  for (int i = 0; i < kLanes; ++i) bits = largest[i] > bits ? largest[i] : bits;
  BlockStats stats;
  stats.sum_squares = folded(sums);
  __builtin_memcpy(&stats.max_abs, &bits, 4);
  return stats;
}

}  // namespace

BlockStats stats_of_block(const void* values, DType dtype, int64_t numel) {
  BlockStats stats;
  with_element(dtype, [&]<class Element>(Element*) { stats = stats_of(static_cast<const Element*>(values), numel); });
  return stats;
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
