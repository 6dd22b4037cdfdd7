#pragma once

#include <cstdint>

#include "core/device/context.h"
#include "kernels/common/matrix.h"

namespace zerofleet {

/// Inputs of a dropout mask beside the element's index.
struct DropoutKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint64_t leaf = 0;      // micro-batch of the step
  std::uint32_t site = 0;      // which dropout of the model
  std::uint32_t sequence = 0;  // of the micro-batch, where each sequence has a mask of its own
  std::int64_t first_row = 0;  // of the mask, where x has some of its rows; a multiple of 64
};

/// A dropout as kernels apply it: element e is dropped if draw(e) < dropped_below, else multiplied by `scale`. With
/// Philox4x32-10 under the key `stream`, draw(e) is word (e mod 64) / 16 of the counter 16 · (e / 64) + e mod 16. This
/// order fits vectors of 4, 8 and 16 lanes alike.
struct DropoutRule {
  std::uint64_t stream = 0;
  std::uint32_t dropped_below = 0;
  float scale = 1;                  // 1 / (1 − p)
  bool adds = false;                // y += instead of y =
  std::uint64_t first_element = 0;  // of x; a multiple of 64
};

/// The rule of a key and the probability p in [0, 1) of being dropped. The stream is itself drawn by Philox from all of
/// the key. Throws Error{"invalid_argument"} for another p.
DropoutRule dropout_rule(const DropoutKey& key, double p);

/// y = x · mask / (1 − p), where the mask is 0 with probability p, else 1. x, y: (M, N) of one dtype; y may be x. The
/// mask of element (m, n) depends on the key and (first_row + m) · N + n alone. The same call on the gradient of y is
/// the backward. A value that is not finite stays so where it is kept, and is NaN where it is dropped.
/// Throws Error{"invalid_argument"} for p outside [0, 1), for another first_row, and where shapes or types do not fit.
void dropout(const Context& ctx, const DropoutKey& key, double p, const ConstMatrix& x, const Matrix& y);
/// y = x · factor. x, y: (M, N) of one dtype; y may be x. Throws Error{"invalid_argument"} where they do not fit.
void scale(const Context& ctx, double factor, const ConstMatrix& x, const Matrix& y);
/// y += x, rounded once.
void add(const Context& ctx, const ConstMatrix& x, const Matrix& y);
/// y += x · mask / (1 − p), rounded once.
void add_dropout(const Context& ctx, const DropoutKey& key, double p, const ConstMatrix& x, const Matrix& y);

}  // namespace zerofleet
