#include "model/config/quantized_values.h"

#include "core/device/buffer.h"
#include "core/error.h"
#include "kernels/flat/cast.h"
#include "kernels/quantize/quantized_matrix.h"

namespace zerofleet {

void quantized_values(const Context& context, QuantFormat format, DType dtype, const MatrixShape& shape,
                      std::span<float> values) {
  const auto [rows, cols] = shape;
  require(rows >= 1 && cols >= 1 && std::ssize(values) == rows * cols, "invalid_argument",
          "a matrix has as many values as its rows times its columns");
  Buffer rounded(context.device, values.size() * size_of(dtype));
  const std::span<std::byte> bytes(rounded.data(), rounded.num_bytes());
  cast_from_f32(context, values, dtype, bytes);
  const Matrix matrix{rounded.data(), dtype, rows, cols, cols};
  QuantizedMatrix codes(context.device, format, rows, cols);
  quantize(context, matrix, codes);
  dequantize(context, codes, matrix);
  cast_to_f32(context, bytes, dtype, values);
}

}  // namespace zerofleet
