#pragma once

#include <cstdint>
#include <memory>

#include "core/device/context.h"
#include "kernels/gemm/cuda/matmuls.h"

namespace zerofleet::cuda {

/// A product with a known result, to test an algorithm.
///
/// The operands have the strides and alignment of a given product, in temporary memory. They contain ones, in A only at
/// some k, and NaNs between the rows. Each element of C is then a whole number that all types represent. The sum is
/// wrong if an algorithm omits one of the last k, or a part of more than 1/128 of all k. With an fp32 C, any omission
/// shows.
///
/// The trial writes to the C of the given product, which that product overwrites anyway, and likewise to the input of
/// GELU if it is an output. Everything that the product reads is replaced.
class OnesTrial {
 public:
  /// `k`: of the given product.
  OnesTrial(const Context& ctx, const Matmul& given, std::int64_t k);
  ~OnesTrial();
  OnesTrial(const OnesTrial&) = delete;
  OnesTrial& operator=(const OnesTrial&) = delete;

  /// The product to run.
  const Matmul& product() const { return product_; }
  /// Queues the preparation of the outputs. Must precede each run.
  void prepare();
  /// Waits for the product. Returns true if its outputs are right.
  bool is_right();

 private:
  struct Operands;

  Context ctx_;
  Matmul product_;
  std::unique_ptr<Operands> operands_;
  float expected_ = 0, expected_inner_ = 0;
};

}  // namespace zerofleet::cuda
