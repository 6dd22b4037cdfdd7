#include "kernels/attention/simd/rope.h"

#include "kernels/common/simd/elements.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

/// Angles of the pairs of one position, with the sign of their sines.
struct Angles {
  const float *cosine, *sine;  // (half)
  int64_t half;
  float sign;
};

template <class T>
ZF_INLINE void rotate_halves(T* first, const Angles& a) {
  T* second = first + a.half;
  sweep(a.half, [&](int64_t i, auto part) {
    const vf x1 = load(first + i, part), x2 = load(second + i, part);
    const vf c = load(a.cosine + i, part), s = load(a.sine + i, part) * set1(a.sign);
    store(first + i, x1 * c - x2 * s, part);
    store(second + i, x2 * c + x1 * s, part);
  });
}

/// Values of the pairs from element i on, for each element of a pair.
ZF_INLINE vf for_both(const float* of_pairs, int64_t i, int elements) {
  vi source{};
  for (int lane = 0; lane < kLanes; ++lane) source[lane] = lane / 2;
  return __builtin_shuffle(load_first(of_pairs + i / 2, elements / 2), source);
}

ZF_INLINE int elements_of(Whole) { return kLanes; }
ZF_INLINE int elements_of(Rest rest) { return rest.count; }

template <class T>
ZF_INLINE void rotate_neighbours(T* first, const Angles& a) {
  vf sign = set1(a.sign);
  for (int lane = 0; lane < kLanes; lane += 2) sign[lane] = -a.sign;
  sweep(2 * a.half, [&](int64_t i, auto part) {
    const vf x = load(first + i, part);
    const vf c = for_both(a.cosine, i, elements_of(part)), s = for_both(a.sine, i, elements_of(part)) * sign;
    store(first + i, x * c + exchange<1>(x) * s, part);
  });
}

template <class T>
void rotate(const RopeArgs& args) {
  const int64_t half = args.rotary_dim / 2;
  for (int64_t row = 0; row < args.rows; ++row) {
    const int64_t position =
        args.positions != nullptr ? args.positions[row] : (args.first_position + row) % args.num_positions;
    const Angles angles{args.cosine + position * half, args.sine + position * half, half, args.inverse ? -1.0F : 1.0F};
    for (int64_t head = 0; head < args.heads; ++head) {
      T* first = static_cast<T*>(args.x) + row * args.stride + head * args.head_dim;
      if (args.interleaved)
        rotate_neighbours(first, angles);
      else
        rotate_halves(first, angles);
    }
  }
}

}  // namespace

void rope_rows(const RopeArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) { rotate<T>(args); });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
