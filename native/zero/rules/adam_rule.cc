#include <array>
#include <cmath>

#include "kernels/adam.h"
#include "zero/rules/rules.h"

namespace zerofleet {
namespace {

constexpr std::array kStates{StateId::kMaster, StateId::kExpAvg, StateId::kExpAvgSq};

class AdamRule final : public OptimizerRule {
 public:
  explicit AdamRule(const OptimizerOptions& options) : options_(options) {}

  std::span<const StateId> states() const override { return kStates; }

  void update(const Context& context, std::span<const UpdateSegment> segments, const OptimizerDTypes& dtypes,
              const UpdateScalars& scalars) const override {
    const auto step = static_cast<double>(scalars.step);
    AdamScalars k;
    k.grad_factor = scalars.grad_factor;
    k.one_minus_beta1 = static_cast<float>(1.0 - options_.beta1);
    k.beta2 = static_cast<float>(options_.beta2);
    k.one_minus_beta2 = static_cast<float>(1.0 - options_.beta2);
    k.eps = static_cast<float>(options_.eps);
    k.inv_sqrt_correction2 = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(options_.beta2, step)));
    const double correction1 = 1.0 - std::pow(options_.beta1, step);
    const auto groups = per_group(scalars, [&](const GroupScalars& group) {
      k.weight_decay = static_cast<float>(group.weight_decay);
      k.step_size = static_cast<float>(group.lr / correction1);
      return k;
    });
    adam(context, kernel_segments(segments, {StateId::kExpAvg, StateId::kExpAvgSq}), dtypes, groups);
  }

 private:
  OptimizerOptions options_;
};

}  // namespace

std::unique_ptr<OptimizerRule> make_adam_rule(const OptimizerOptions& options) {
  return std::make_unique<AdamRule>(options);
}

}  // namespace zerofleet
