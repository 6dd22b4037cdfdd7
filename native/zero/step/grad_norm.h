#pragma once

#include <cstdint>
#include <span>

namespace zerofleet {

/// Norm by which gradients are clipped: the root of the sum of squares, or the largest magnitude. It covers all
/// parameters, including those of every expert set (as DeepSpeed's `get_grad_norm_direct` over the whole data-parallel
/// group).
enum class NormKind : std::uint8_t { kL2, kMax };

/// Sums over blocks, in fp64: of the blocks' sums of squares, or their largest magnitude.
struct NormSums {
  double spread = 0;  // parameters whose elements differ between model-parallel ranks
  double same = 0;    // all other parameters
};

/// Contribution of one block to its sum. `sum_squares` must reveal values that are not finite; `max_abs` need not.
double block_value(NormKind kind, double sum_squares, double max_abs);

/// Adds a value to a sum. The order of values decides the bits. A sum that is not finite stays so.
double fold(NormKind kind, double sum, double value);

/// Combines the sums of all model-parallel ranks (at least one). `spread` is folded in rank order, `same` is taken from
/// rank 0. If a sum of any rank is not finite, the result is not.
NormSums over_model_parallel(NormKind kind, std::span<const NormSums> sums_of_ranks);

/// Returns the norm of all elements. Not finite if any element is not.
double total_norm(NormKind kind, const NormSums& sums);

}  // namespace zerofleet
