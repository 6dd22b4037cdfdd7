#pragma once

#include <cstdint>
#include <span>

namespace zerofleet {

/// An adapter's factors and the matrix that they are over.
struct AdapterFactors {
  std::span<const float> down;  // (rank, in)
  std::span<const float> up;    // (out, rank)
  std::int64_t rank = 0, in = 0, out = 0;
  double scale = 1;
  bool in_first = false;  // the matrix is stored as (in, out)
};

/// Adds scale · B A to elements [begin, begin + values.size()) of the matrix. Sums are in float64 and rounded once: the same
/// bits wherever a piece begins. Throws Error{"invalid_argument"} where sizes do not fit.
void merge_adapter(const AdapterFactors& adapter, std::int64_t begin, std::span<float> values);

}  // namespace zerofleet
