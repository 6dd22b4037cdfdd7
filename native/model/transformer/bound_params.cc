#include "model/transformer/bound_params.h"

#include <algorithm>
#include <string>

#include "core/error.h"

namespace zerofleet {
namespace {

void check_number(const char* what, std::size_t given, std::size_t expected) {
  require(given == expected, "invalid_argument",
          "bind_params: " + std::to_string(given) + " " + what + " for " + std::to_string(expected) + " parameters");
}

/// Returns true for null: experts that other ranks hold.
bool fits(const QuantizedMatrix* matrix, const ParamSpec& spec) {
  return matrix == nullptr ||
         (matrix->format() == spec.quantization && matrix->rows() == spec.shape[0] && matrix->cols() == spec.shape[1]);
}

}  // namespace

void BoundParams::bind(std::span<const ParamSpec> specs, ParamPointers params) {
  check_number("pointers", params.elements.size(), specs.size());
  const bool is_quantized =
      std::ranges::any_of(specs, [](const ParamSpec& spec) { return spec.quantization.has_value(); });
  check_number("quantized matrices", params.quantized.size(), is_quantized ? specs.size() : 0);
  for (std::size_t param = 0; param < params.quantized.size(); ++param) {
    require(fits(params.quantized[param], specs[param]), "invalid_argument",
            "bind_params: the quantized matrix of " + specs[param].name + " has another format or shape");
  }
  elements_.assign(params.elements.begin(), params.elements.end());
  quantized_.assign(params.quantized.begin(), params.quantized.end());
}

}  // namespace zerofleet
