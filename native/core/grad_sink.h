#pragma once

#include <cstddef>
#include <span>

#include "core/grad_view.h"

namespace zerofleet {

/// Destination of the gradients of a leaf. Every trained parameter's comes once, as soon as it is final.
class GradSink {
 public:
  virtual ~GradSink() = default;

  /// Takes a gradient; its elements are valid during the call only.
  virtual void take(std::size_t param, const GradView& grad) = 0;
  void take(std::size_t param, std::span<const float> grad) { take(param, GradView::of(grad)); }

  /// Returns room for the gradient of a parameter in this dtype, in memory of the compute device, or null. What is
  /// computed there must be given to take() at this address, and is then not copied.
  virtual std::byte* room_for(std::size_t /*param*/, DType /*dtype*/) { return nullptr; }
};

}  // namespace zerofleet
