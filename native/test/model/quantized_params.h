#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/device/context.h"
#include "core/param_spec.h"
#include "kernels/quantize/quantized_matrix.h"

namespace zerofleet::test {

/// The quantized matrices of a model, made of its parameters in a dtype.
class QuantizedParams {
 public:
  QuantizedParams() = default;
  /// Takes the elements of quantized parameters out of `elements`.
  QuantizedParams(const Context& ctx, std::span<const ParamSpec> specs, DType dtype,
                  std::vector<const std::byte*>& elements);

  /// Empty for a model without quantization.
  std::span<const QuantizedMatrix* const> pointers() const { return pointers_; }

 private:
  std::vector<QuantizedMatrix> matrices_;
  std::vector<const QuantizedMatrix*> pointers_;
};

}  // namespace zerofleet::test
