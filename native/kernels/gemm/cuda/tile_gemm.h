#pragma once

#include <span>

#include "core/device/context.h"
#include "kernels/gemm/cuda/operands.h"
#include "kernels/gemm/gemm.h"

namespace zerofleet::cuda {

/// A product and its right operand as it lies in memory.
struct TileProduct {
  const GemmProblem* problem = nullptr;
  RightOperand right;
};

/// Returns true if tile_gemm() supports the product: elements of two bytes, B in at most two parts, and rows that can
/// be read in pieces of 16 bytes.
bool can_tile(const TileProduct& product);

/// Products for which can_tile() holds, on tensor cores, as many as can be in one launch. For those whose shapes are
/// not known before, or only to the device: nothing is chosen for a shape, small products share the device, and an element of C has one chain
/// of sums that depends on its row of A and its column of B alone.
void tile_gemm(const Context& ctx, std::span<const TileProduct> products);

}  // namespace zerofleet::cuda
