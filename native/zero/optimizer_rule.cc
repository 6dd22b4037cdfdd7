#include "zero/optimizer_rule.h"

#include <array>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "kernels/adamw.h"

namespace zerofleet {
namespace {

constexpr std::array kAdamWStates{StateId::kMaster, StateId::kExpAvg, StateId::kExpAvgSq};

constexpr std::size_t index(StateId state) { return static_cast<std::size_t>(state); }

class AdamW final : public OptimizerRule {
 public:
  explicit AdamW(const AdamWOptions& options) : options_(options) {}

  std::span<const StateId> states() const override { return kAdamWStates; }

  void update(const Context& context, std::span<const UpdateSegment> segments, DType param_dtype,
              const UpdateScalars& scalars) const override {
    std::vector<AdamWSegment> arrays;
    for (const UpdateSegment& segment : segments) {
      arrays.push_back({segment.states[index(StateId::kMaster)], segment.states[index(StateId::kExpAvg)],
                        segment.states[index(StateId::kExpAvgSq)], segment.grad, segment.params, segment.numel,
                        segment.decay});
    }
    adamw(context, arrays, param_dtype, constants(scalars));
  }

 private:
  /// Computed in fp64 and rounded once.
  AdamWScalars constants(const UpdateScalars& scalars) const {
    const double step = static_cast<double>(scalars.step);
    AdamWScalars k;
    k.grad_factor = scalars.grad_factor;
    k.one_minus_beta1 = static_cast<float>(1.0 - options_.beta1);
    k.beta2 = static_cast<float>(options_.beta2);
    k.one_minus_beta2 = static_cast<float>(1.0 - options_.beta2);
    k.eps = static_cast<float>(options_.eps);
    k.decay_factor = static_cast<float>(1.0 - scalars.lr * options_.weight_decay);
    k.step_size = static_cast<float>(scalars.lr / (1.0 - std::pow(options_.beta1, step)));
    k.inv_sqrt_correction2 = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(options_.beta2, step)));
    return k;
  }

  AdamWOptions options_;
};

}  // namespace

std::unique_ptr<OptimizerRule> make_adamw(const AdamWOptions& options) {
  require(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1, "invalid_argument",
          "beta1 and beta2 must be in [0, 1)");
  require(static_cast<float>(options.eps) > 0, "invalid_argument", "eps must be positive");
  require(options.weight_decay >= 0, "invalid_argument", "weight_decay must not be negative");
  return std::make_unique<AdamW>(options);
}

}  // namespace zerofleet
