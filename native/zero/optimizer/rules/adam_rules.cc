#include <array>
#include <cmath>

#include "core/portable_math.h"
#include "kernels/optimizer/optimizer_update.h"
#include "zero/optimizer/rules/rules.h"

// Adam and AdamW differ in where the weight decay goes: into the gradient, or into a factor of the master.
namespace zerofleet {
namespace {

constexpr std::array kAdamStates{StateId::kMaster, StateId::kExpAvg, StateId::kExpAvgSq};

void set_decay(AdamScalars& k, const GroupScalars& group) { k.weight_decay = static_cast<float>(group.weight_decay); }
void set_decay(AdamWScalars& k, const GroupScalars& group) {
  k.decay_factor = static_cast<float>(1.0 - group.lr * group.weight_decay);
}

template <class Update>
class AdamRule final : public OptimizerRule {
 public:
  explicit AdamRule(const OptimizerOptions& options) : options_(options) {}

  std::span<const StateId> states() const override { return kAdamStates; }
  void set_constants(const OptimizerOptions& options) override { options_ = options; }

  void update(const Context& context, std::span<const UpdateSegment> segments, const OptimizerDTypes& dtypes,
              const UpdateScalars& scalars) const override {
    typename Update::Scalars k;
    k.grad_factor = scalars.grad_factor;
    k.one_minus_beta1 = static_cast<float>(1.0 - options_.beta1);
    k.beta2 = static_cast<float>(options_.beta2);
    k.one_minus_beta2 = static_cast<float>(1.0 - options_.beta2);
    k.eps = static_cast<float>(options_.eps);
    k.inv_sqrt_correction2 = static_cast<float>(1.0 / std::sqrt(1.0 - portable::power(options_.beta2, scalars.step)));
    const double correction1 = 1.0 - portable::power(options_.beta1, scalars.step);
    const auto groups = per_group(scalars, [&](const GroupScalars& group) {
      set_decay(k, group);
      k.step_size = static_cast<float>(group.lr / correction1);
      return k;
    });
    optimizer_update<Update>(context, kernel_segments(segments, scalars, {StateId::kExpAvg, StateId::kExpAvgSq}),
                             dtypes, groups);
  }

 private:
  OptimizerOptions options_;
};

}  // namespace

std::unique_ptr<OptimizerRule> make_adam_rule(const OptimizerOptions& options) {
  return std::make_unique<AdamRule<AdamUpdate>>(options);
}

std::unique_ptr<OptimizerRule> make_adamw_rule(const OptimizerOptions& options) {
  return std::make_unique<AdamRule<AdamWUpdate>>(options);
}

}  // namespace zerofleet
