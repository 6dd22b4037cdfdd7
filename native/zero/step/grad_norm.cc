#include "zero/step/grad_norm.h"

#include <cmath>

#include "core/error.h"

namespace zerofleet {

double block_value(NormKind kind, double sum_squares, double max_abs) {
  return kind == NormKind::kL2 || !std::isfinite(sum_squares) ? sum_squares : max_abs;
}

double fold(NormKind kind, double sum, double value) {
  if (kind == NormKind::kL2) return sum + value;
  // Whichever is NaN stays.
  return sum > value || std::isnan(sum) ? sum : value;
}

NormSums over_model_parallel(NormKind kind, std::span<const NormSums> sums_of_ranks) {
  require(!sums_of_ranks.empty(), "invalid_argument", "a norm needs the sums of at least one rank");
  NormSums all = sums_of_ranks.front();
  for (const NormSums& sums : sums_of_ranks.subspan(1)) {
    all.spread = fold(kind, all.spread, sums.spread);
    if (!std::isfinite(sums.same)) all.same = fold(kind, all.same, sums.same);
  }
  return all;
}

double total_norm(NormKind kind, const NormSums& sums) {
  const double sum = fold(kind, sums.spread, sums.same);
  return kind == NormKind::kL2 ? std::sqrt(sum) : sum;
}

}  // namespace zerofleet
