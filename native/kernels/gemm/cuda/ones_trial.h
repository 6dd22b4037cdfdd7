#pragma once

#include <cstdint>
#include <memory>

#include "core/device/context.h"
#include "kernels/gemm/cuda/matmuls.h"

namespace zerofleet::cuda {

/// A product whose result is known, to try an algorithm on. Its operands have the strides and alignment of a given
/// product's, in temporary memory, and hold ones, in A only at some k, with NaNs between the rows; each element of C is then a
/// whole number that all types represent. The sum lacks something where an algorithm leaves out one of the last k, or a part of
/// more than 1/128 of all k; with an fp32 C, any.
///
/// C is the given product's own, which that overwrites anyway, as is the input of GELU where it is an output; what a product
/// reads is replaced.
class OnesTrial {
 public:
  /// k: of the product.
  OnesTrial(const Context& ctx, const Matmul& given, std::int64_t k);
  ~OnesTrial();
  OnesTrial(const OnesTrial&) = delete;
  OnesTrial& operator=(const OnesTrial&) = delete;

  /// The product to run.
  const Matmul& product() const { return product_; }
  /// Queues the preparation of what the product writes: before each run.
  void prepare();
  /// Waits for the product; returns true if all that it wrote is right.
  bool is_right();

 private:
  struct Operands;

  Context ctx_;
  Matmul product_;
  std::unique_ptr<Operands> operands_;
  float expected_ = 0, expected_inner_ = 0;
};

}  // namespace zerofleet::cuda
