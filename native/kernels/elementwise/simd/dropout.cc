#include "kernels/elementwise/simd/dropout.h"

#include "kernels/common/simd/elements.h"
#include "kernels/elementwise/simd/philox.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

constexpr int64_t kGroup = 64;  // elements that share 16 counters, of 4 words each
constexpr int kGroupCounters = 16;
static_assert(kGroupCounters % kLanes == 0);

/// Computes the factors of the elements [group · 64, group · 64 + 64).
ZF_INLINE void group_factors(const DropoutArgs& args, uint64_t group, float* factors) {
  for (int i = 0; i < kGroupCounters; i += kLanes) {
    const PhiloxWords words = philox(args.stream, group * kGroupCounters + static_cast<uint64_t>(i));
    for (int w = 0; w < 4; ++w)
      store(factors + w * kGroupCounters + i, words.word[w] < args.dropped_below ? zero() : set1(args.scale));
  }
}

template <class T, bool kAdds>
void drop(const DropoutArgs& args) {
  const bool draws = args.dropped_below > 0;
  alignas(64) float factors[kGroup];
  for (float& factor : factors) factor = args.scale;
  for (int64_t row = 0; row < args.rows; ++row) {
    const T* x = row_of<T>(args.x, row);
    T* y = row_of<T>(args.y, row);
    const uint64_t begin = args.first_element + static_cast<uint64_t>(row) * args.elements_per_row;
    int64_t count = 0;
    for (int64_t col = 0; col < args.cols; col += count) {
      const uint64_t element = begin + static_cast<uint64_t>(col);
      const auto offset = static_cast<int64_t>(element % kGroup);
      count = kGroup - offset < args.cols - col ? kGroup - offset : args.cols - col;
      if (draws) group_factors(args, element / kGroup, factors);
      sweep(count, [&](int64_t i, auto part) {
        vf kept = load(x + col + i, part) * load(factors + offset + i, part);
        if constexpr (kAdds) kept = load(y + col + i, part) + kept;
        store(y + col + i, kept, part);
      });
    }
  }
}

}  // namespace

void dropout_rows(const DropoutArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) { args.adds ? drop<T, true>(args) : drop<T, false>(args); });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
