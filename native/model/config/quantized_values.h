#pragma once

#include <cstdint>
#include <span>

#include "core/device/context.h"
#include "core/dtype.h"
#include "core/quant_format.h"

namespace zerofleet {

struct MatrixShape {
  std::int64_t rows = 0, cols = 0;
};

/// Makes of a matrix of the base what the products of a training in `dtype` read of it: rounded to the dtype,
/// quantized, and restored in the dtype. Throws Error{"invalid_argument"} for another number of values.
void quantized_values(const Context& context, QuantFormat format, DType dtype, const MatrixShape& shape,
                      std::span<float> values);

}  // namespace zerofleet
