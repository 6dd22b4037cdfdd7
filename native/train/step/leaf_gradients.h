#pragma once

#include <cstddef>

#include "core/grad_sink.h"
#include "zero/step/zero_optimizer.h"

namespace zerofleet {

/// Gives the gradients of a leaf to the optimizer.
class LeafGradients final : public GradSink {
 public:
  explicit LeafGradients(ZeroOptimizer& optimizer) : optimizer_(optimizer) {}

  void take(std::size_t param, const GradView& grad) override { optimizer_.add_grad(param, grad); }
  std::byte* room_for(std::size_t param, DType dtype) override { return optimizer_.room_for(param, dtype); }

 private:
  ZeroOptimizer& optimizer_;
};

}  // namespace zerofleet
