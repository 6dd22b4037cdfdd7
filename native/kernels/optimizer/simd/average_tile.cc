#include "kernels/optimizer/simd/average_tile.h"

#include "kernels/common/simd/arithmetic.h"
#include "kernels/common/simd/elements.h"
#include "kernels/common/simd/stream.h"
#include "kernels/common/simd/vec.h"
#include "kernels/optimizer/formulas/average.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

template <class Part>
ZF_INLINE void move_average(const float* master, float* average, float weight, Part part) {
  store(average, moved_average<VectorArithmetic>(load(average, part), load(master, part), weight), part);
}

}  // namespace

void average_tile(const float* master, float* average, float weight, int64_t numel) {
  int64_t i = 0;
  for (; i + kLanes <= numel; i += kLanes) {
    prefetch_ahead(average + i);
    move_average(master + i, average + i, weight, Whole{});
  }
  if (i < numel) move_average(master + i, average + i, weight, Rest{static_cast<int>(numel - i)});
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
