#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/param_spec.h"
#include "model/common/block.h"

namespace zerofleet {

/// The parameters that a model was given, which it does not own.
class BoundParams {
 public:
  /// Throws Error{"invalid_argument"} where there is not one pointer per ParamSpec. If the model has quantized
  /// matrices, the same holds for the pointers to them. A matrix of another format or shape than its parameter throws
  /// as well.
  void bind(std::span<const ParamSpec> specs, ParamPointers params);

  bool empty() const { return elements_.empty(); }
  ParamPointers pointers() const { return {elements_, quantized_}; }
  const std::byte* operator[](std::size_t param) const { return elements_[param]; }

 private:
  std::vector<const std::byte*> elements_;
  std::vector<const QuantizedMatrix*> quantized_;  // by parameter, or empty
};

}  // namespace zerofleet
