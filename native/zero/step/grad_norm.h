#pragma once

#include <cstdint>
#include <span>

namespace zerofleet {

/// The norm that gradients are clipped by: the root of the sum of squares, or the largest magnitude. It is taken over all
/// parameters, those of every expert set too (DeepSpeed: `get_grad_norm_direct` over the whole data-parallel group).
enum class NormKind : std::uint8_t { kL2, kMax };

/// Sums over blocks, in fp64: the sum of their sums of squares, or their largest magnitude.
struct NormSums {
  double spread = 0;  // parameters of which each model-parallel rank holds other elements
  double same = 0;    // all others: every model-parallel rank holds the same elements
};

/// The contribution of one block to its sum. `sum_squares` must show what is not finite, `max_abs` need not.
double block_value(NormKind kind, double sum_squares, double max_abs);

/// A sum with one more value; for the same bits everywhere, values come in the same order. What is not finite stays.
double fold(NormKind kind, double sum, double value);

/// The sums of each model-parallel rank (at least one) → those of all: `spread` is folded in rank order, `same` counts once,
/// as rank 0 has it. A sum that is not finite on any rank is not finite afterwards.
NormSums over_model_parallel(NormKind kind, std::span<const NormSums> sums_of_ranks);

/// The norm of everything. Not finite if any element is not.
double total_norm(NormKind kind, const NormSums& sums);

}  // namespace zerofleet
