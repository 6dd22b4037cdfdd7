#pragma once

#include <span>

#include "core/device/context.h"
#include "kernels/gemm/cuda/operands.h"
#include "kernels/gemm/gemm.h"

namespace zerofleet::cuda {

/// A product with its right operand in its memory layout.
struct TileProduct {
  const GemmProblem* problem = nullptr;
  RightOperand right;
};

/// True if tile_gemm() supports the product: 2-byte elements, B in at most two parts, and rows that can be read in
/// pieces of 16 bytes.
bool can_tile(const TileProduct& product);

/// Computes products for which can_tile() is true, on tensor cores, as many per launch as possible.
///
/// It serves shapes that are not known in advance, or only on the device. No algorithm is chosen per shape, and small
/// products share the device. Each element of C is one chain of sums, which depends on its row of A and its column of B
/// alone.
void tile_gemm(const Context& ctx, std::span<const TileProduct> products);

}  // namespace zerofleet::cuda
