#include "kernels/attention/simd/cached_attention.h"

#include "kernels/common/simd/exponentials.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

template <class T>
ZF_INLINE void scores(const CachedQueryArgs& args) {
  const T* query = static_cast<const T*>(args.query);
  for (int64_t key = 0; key < args.num_keys; ++key) {
    const T* row = static_cast<const T*>(args.keys) + key * args.stride;
    vf products = zero();
    sweep(args.head_dim,
          [&](int64_t i, auto part) { products = fma(load(query + i, part), load(row + i, part), products); });
    args.probs[key] = sum_lanes(products) * args.scale;
  }
}

template <class T>
ZF_INLINE void weighted_values(const CachedQueryArgs& args, float factor) {
  sweep(args.head_dim, [&](int64_t i, auto part) { store(args.sums + i, zero(), part); });
  for (int64_t key = 0; key < args.num_keys; ++key) {
    const T* row = static_cast<const T*>(args.values) + key * args.stride;
    const vf weight = set1(args.probs[key] * factor);
    sweep(args.head_dim, [&](int64_t i, auto part) {
      store(args.sums + i, fma(weight, load(row + i, part), load(args.sums + i, part)), part);
    });
  }
  T* out = static_cast<T*>(args.out);
  sweep(args.head_dim, [&](int64_t i, auto part) { store(out + i, load(args.sums + i, part), part); });
}

}  // namespace

void cached_query(const CachedQueryArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) {
    scores<T>(args);
    weighted_values<T>(args, 1.0F / exponentials(args.probs, args.probs, args.num_keys).sum);
  });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
