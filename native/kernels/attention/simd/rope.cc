#include "kernels/attention/simd/rope.h"

#include "kernels/common/simd/elements.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

template <class T>
void rotate(const RopeArgs& args) {
  const int64_t half = args.rotary_dim / 2;
  const vf sign = set1(args.inverse ? -1.0F : 1.0F);
  for (int64_t row = 0; row < args.rows; ++row) {
    const int64_t position =
        args.positions != nullptr ? args.positions[row] : (args.first_position + row) % args.num_positions;
    const float* cosine = args.cosine + position * half;
    const float* sine = args.sine + position * half;
    for (int64_t head = 0; head < args.heads; ++head) {
      T* first = static_cast<T*>(args.x) + row * args.stride + head * args.head_dim;
      T* second = first + half;
      sweep(half, [&](int64_t i, auto part) {
        const vf x1 = load(first + i, part), x2 = load(second + i, part);
        const vf c = load(cosine + i, part), s = load(sine + i, part) * sign;
        store(first + i, x1 * c - x2 * s, part);
        store(second + i, x2 * c + x1 * s, part);
      });
    }
  }
}

}  // namespace

void rope_rows(const RopeArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) { rotate<T>(args); });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
