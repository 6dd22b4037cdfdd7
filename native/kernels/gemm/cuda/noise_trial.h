#pragma once

#include <cstdint>

#include "core/device/context.h"
#include "kernels/gemm/cuda/matmuls.h"

namespace zerofleet::cuda {

/// A product of pseudo-random operands, which tells algorithms with equal bits from others: sums in another order round
/// differently in some of many elements.
class NoiseTrial {
 public:
  /// Products with fewer elements are not tried: too few bits, and too little time to win.
  static constexpr std::int64_t kMinElements = 1 << 16;

  /// of: the product of a trial, whose operands are overwritten.
  NoiseTrial(const Context& ctx, const Matmul& of);

  /// The product to run. It does not add to C.
  const Matmul& product() const { return product_; }
  /// Waits for the product; returns a checksum of the bits of all that it wrote.
  std::uint64_t checksum() const;

 private:
  Context ctx_;
  Matmul product_;
};

}  // namespace zerofleet::cuda
