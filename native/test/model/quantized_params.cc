#include "test/model/quantized_params.h"

#include <algorithm>

#include "core/device/transfer.h"

namespace zerofleet::test {

QuantizedParams::QuantizedParams(const Context& ctx, std::span<const ParamSpec> specs, DType dtype,
                                 std::vector<const std::byte*>& elements) {
  if (std::ranges::none_of(specs, [](const ParamSpec& spec) { return spec.quantization.has_value(); })) return;
  pointers_.resize(specs.size());
  matrices_.reserve(specs.size());
  for (std::size_t param = 0; param < specs.size(); ++param) {
    const ParamSpec& spec = specs[param];
    if (!spec.quantization || elements[param] == nullptr) continue;
    const std::int64_t rows = spec.shape[0], cols = spec.shape[1];
    QuantizedMatrix& matrix = matrices_.emplace_back(ctx.device, *spec.quantization, rows, cols);
    quantize(ctx, {elements[param], dtype, rows, cols, cols}, matrix);
    pointers_[param] = &matrix;
    elements[param] = nullptr;
  }
  synchronize(ctx);
}

}  // namespace zerofleet::test
