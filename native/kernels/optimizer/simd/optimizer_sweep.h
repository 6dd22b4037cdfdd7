#pragma once

// The loop that the element-wise optimizers share. For SIMD sources only.

#include "kernels/common/simd/arithmetic.h"
#include "kernels/common/simd/elements.h"
#include "kernels/common/simd/stream.h"
#include "kernels/common/simd/stream_elements.h"
#include "kernels/common/simd/vec.h"
#include "kernels/optimizer/formulas/element.h"
#include "kernels/optimizer/simd/optimizer_tile.h"

namespace zerofleet::cpu::ZF_ISA_NS {

// Elements that are treated between two prefetches: one cache line of each fp32 array.
constexpr int64_t kLine = 16;

/// A vector of every array of a tile.
using Elements = Element<VectorArithmetic>;

template <class Update>
ZF_INLINE void prefetch_line(const OptimizerTile& tile, int64_t i) {
  prefetch_ahead(tile.master + i);
  if constexpr (Update::kReadsGrad) prefetch_ahead(tile.grad + i);
  if constexpr (Update::kNumStates > 0) prefetch_ahead(tile.states[0] + i);
  if constexpr (Update::kNumStates > 1) prefetch_ahead(tile.states[1] + i);
}

/// The new master goes nowhere else.
struct NoParams {
  template <class Part>
  __attribute__((always_inline)) void write(int64_t, vf, Part) const {}
};

template <class Element>
struct StreamedParams {
  Element* params;
  template <class Part>
  __attribute__((always_inline)) void write(int64_t i, vf values, Part part) const {
    stream_elements(params + i, values, part);
  }
};

template <class Update, class Params, class Part>
ZF_INLINE void update_elements(const OptimizerTile& tile, int64_t i, const typename Update::Scalars& k, Params params,
                               Part part) {
  Elements e;
  e.master = load(tile.master + i, part);
  if constexpr (Update::kReadsGrad) e.grad = load(tile.grad + i, part);
  if constexpr (Update::kNumStates > 0) e.states[0] = load(tile.states[0] + i, part);
  if constexpr (Update::kNumStates > 1) e.states[1] = load(tile.states[1] + i, part);
  Update::template apply<VectorArithmetic>(e, k);
  store(tile.master + i, e.master, part);
  if constexpr (Update::kWritesStates && Update::kNumStates > 0) store(tile.states[0] + i, e.states[0], part);
  if constexpr (Update::kWritesStates && Update::kNumStates > 1) store(tile.states[1] + i, e.states[1], part);
  params.write(i, e.master, part);
}

template <class Update, class Params>
ZF_INLINE void sweep_arrays(const OptimizerTile& tile, const typename Update::Scalars& k, Params params) {
  int64_t i = 0;
  for (; i + kLine <= tile.numel; i += kLine) {
    prefetch_line<Update>(tile, i);
    for (int64_t j = i; j < i + kLine; j += kLanes) update_elements<Update>(tile, j, k, params, Whole{});
  }
  for (; i + kLanes <= tile.numel; i += kLanes) update_elements<Update>(tile, i, k, params, Whole{});
  if (i < tile.numel) update_elements<Update>(tile, i, k, params, Rest{static_cast<int>(tile.numel - i)});
}

/// Loads every vector of the tile, applies the update, stores master and states. Memory is the limit, so two measures
/// speed the sweep up. A few lines of every array are prefetched, because the hardware follows so many streams badly.
/// Parameters are stored by non-temporal stores, because they are not read here.
template <class Update>
ZF_INLINE void sweep_tile(const OptimizerTile& source, const typename Update::Scalars& scalars) {
  // Copies, so that no store can change them.
  const OptimizerTile tile = source;
  const typename Update::Scalars k = scalars;
  if (tile.params == nullptr) return sweep_arrays<Update>(tile, k, NoParams{});
  with_element(tile.params_dtype, [&]<class Element>(Element*) {
    sweep_arrays<Update>(tile, k, StreamedParams<Element>{static_cast<Element*>(tile.params)});
  });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
