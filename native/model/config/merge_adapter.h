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
  bool in_first = false;                        // the matrix is stored as (in, out)
  std::span<const double> output_factors = {};  // (out), or empty: 1
};

/// Makes V = W + scale · B A of elements [begin, begin + values.size()) of the matrix, times the factor of their
/// output. In float64 and rounded once: the same bits wherever a piece begins. Throws Error{"invalid_argument"} where
/// sizes do not fit.
void merge_adapter(const AdapterFactors& adapter, std::int64_t begin, std::span<float> values);

/// Adds the squares of these elements of V, without factors, to the sums (out) of their outputs. Pieces that follow
/// each other give the bits of the whole matrix.
void add_output_squares(const AdapterFactors& adapter, std::int64_t begin, std::span<const float> values,
                        std::span<double> sums);

}  // namespace zerofleet
