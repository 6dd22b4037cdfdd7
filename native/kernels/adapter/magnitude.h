#pragma once

#include <cstdint>
#include <span>

#include "core/device/context.h"
#include "kernels/common/matrix.h"

// Operations of weight-decomposed adapters (DoRA, Liu et al. 2024): y = g · (x Vᵀ) + bias for V = W + scale · B A,
// where g has a factor per output, its magnitude divided by the norm of its weights in V. As in PEFT, the norm is a
// constant in the gradient (section 4.3 of the paper). So dV = g · dy, and dmagnitude = Σ dy · (x Vᵀ) / norm.
namespace zerofleet {

/// V = W + scale · B A.
struct AdaptedMatrix {
  ConstMatrix weight;  // W: (out, in), or (in, out) with in_first
  bool in_first = false;
  ConstMatrix down = {};  // A: (rank, in), of W's dtype, rows without gaps; no data: V = W
  ConstMatrix up = {};    // B: (out, rank), the same
  float scale = 1;

  std::int64_t in() const { return in_first ? weight.rows : weight.cols; }
  std::int64_t out() const { return in_first ? weight.cols : weight.rows; }
  std::int64_t rank() const { return down.data == nullptr ? 0 : down.rows; }
};

/// (out) each, in fp32.
struct DirectionNorms {
  AdaptedMatrix matrix;
  std::span<float> norms;           // Euclidean norm of each output's weights in V, rounded to W's dtype as in PEFT
  const void* magnitude = nullptr;  // (out) of W's dtype, or null: what follows is left as it is
  std::span<float> factors = {};    // magnitude / norm, 0 where the norm is 0
  std::span<float> inverses = {};   // 1 / norm, 0 where the norm is 0
};

/// y[m][n] = factors[n] · x[m][n] + bias[n]. x and y: (M, N) of one dtype, which may be the same.
struct ColumnScaling {
  ConstMatrix x;
  std::span<const float> factors;  // (N)
  const void* bias = nullptr;      // (N) of x's dtype, or null
  Matrix y;
  const std::int32_t* row_range = nullptr;  // as in GemmProblem: other rows of y are left as they are
};

/// gradient[n] = inverses[n] · Σ over rows of dy[m][n] · z[m][n], summed as bias_gradient() does. Rows may come in
/// parts of one sum. The gradient is not whole before the last part.
struct MagnitudeGradient {
  ConstMatrix dy, z;                        // (M, N)
  std::span<const float> inverses;          // (N)
  std::span<float> gradient;                // (N)
  const std::int32_t* row_range = nullptr;  // as in GemmProblem: the rows that take part
  bool begins = true, ends = true;          // the first and the last part
};

/// Reads W once and computes rank · in · out multiply-adds; V is nowhere in memory. Squares are summed in fp32, in an
/// order that depends on the shape, the instruction set and the kind of device alone. All throw
/// Error{"invalid_argument"} where shapes or types do not fit.
void direction_norms(const Context& ctx, const DirectionNorms& args);
void scale_columns(const Context& ctx, const ColumnScaling& args);
void magnitude_gradient(const Context& ctx, const MagnitudeGradient& args);

}  // namespace zerofleet
