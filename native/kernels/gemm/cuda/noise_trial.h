#pragma once

#include <cstdint>

#include "core/device/context.h"
#include "kernels/gemm/cuda/matmuls.h"

namespace zerofleet::cuda {

/// A product of pseudo-random operands that distinguishes algorithms by their bits: sums in another order round
/// differently in some of many elements.
class NoiseTrial {
 public:
  /// Smaller products are not tried: they have too few bits to compare, and gain too little time.
  static constexpr std::int64_t kMinElements = 1 << 16;

  /// `trial`: the product of an OnesTrial, whose operands are overwritten.
  NoiseTrial(const Context& ctx, const Matmul& trial);

  /// The product to run. It does not accumulate.
  const Matmul& product() const { return product_; }
  /// Waits for the product, and returns a checksum of the bits of its output.
  std::uint64_t checksum() const;

 private:
  Context ctx_;
  Matmul product_;
};

}  // namespace zerofleet::cuda
