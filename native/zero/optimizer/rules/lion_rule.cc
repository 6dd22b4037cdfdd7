#include <array>

#include "kernels/optimizer/optimizer_update.h"
#include "zero/optimizer/rules/rules.h"

namespace zerofleet {
namespace {

constexpr std::array kLionStates{StateId::kMaster, StateId::kExpAvg};

class LionRule final : public OptimizerRule {
 public:
  explicit LionRule(const OptimizerOptions& options) : options_(options) {}

  std::span<const StateId> states() const override { return kLionStates; }

  void update(const Context& context, std::span<const UpdateSegment> segments, const OptimizerDTypes& dtypes,
              const UpdateScalars& scalars) const override {
    LionScalars k;
    k.grad_factor = scalars.grad_factor;
    k.one_minus_beta1 = static_cast<float>(1.0 - options_.beta1);
    k.one_minus_beta2 = static_cast<float>(1.0 - options_.beta2);
    const auto groups = per_group(scalars, [&](const GroupScalars& group) {
      k.decay_factor = static_cast<float>(1.0 - group.lr * group.weight_decay);
      k.lr = static_cast<float>(group.lr);
      return k;
    });
    optimizer_update<LionUpdate>(context, kernel_segments(segments, scalars, {StateId::kExpAvg}), dtypes, groups);
  }

 private:
  OptimizerOptions options_;
};

}  // namespace

std::unique_ptr<OptimizerRule> make_lion_rule(const OptimizerOptions& options) {
  return std::make_unique<LionRule>(options);
}

}  // namespace zerofleet
