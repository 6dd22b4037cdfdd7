#pragma once

#include "core/error.h"
#include "core/grad_sink.h"
#include "model/transformer/transformer.h"

namespace zerofleet {

/// Gives gradients in fp32 to a function.
class CallbackSink final : public GradSink {
 public:
  explicit CallbackSink(const GradCallback& on_grad) : on_grad_(on_grad) {}

  void take(std::size_t param, const GradView& grad) override {
    require(grad.dtype == DType::kF32, "invalid_argument", "a callback takes gradients in fp32");
    on_grad_(param, {reinterpret_cast<const float*>(grad.data), grad.numel});
  }

 private:
  const GradCallback& on_grad_;
};

}  // namespace zerofleet
