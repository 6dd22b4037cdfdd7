#include <array>

#include "kernels/optimizer/optimizer_update.h"
#include "zero/optimizer/rules/rules.h"

namespace zerofleet {
namespace {

constexpr std::array kAdagradStates{StateId::kMaster, StateId::kSum};

class AdagradRule final : public OptimizerRule {
 public:
  explicit AdagradRule(const OptimizerOptions& options) : options_(options) {}

  std::span<const StateId> states() const override { return kAdagradStates; }

  float initial_value(StateId state) const override {
    return state == StateId::kSum ? static_cast<float>(options_.initial_accumulator_value) : 0.0F;
  }

  void update(const Context& context, std::span<const UpdateSegment> segments, const OptimizerDTypes& dtypes,
              const UpdateScalars& scalars) const override {
    AdagradScalars k;
    k.grad_factor = scalars.grad_factor;
    k.eps = static_cast<float>(options_.eps);
    const double slowing = 1.0 + static_cast<double>(scalars.step - 1) * options_.lr_decay;
    const auto groups = per_group(scalars, [&](const GroupScalars& group) {
      k.weight_decay = static_cast<float>(group.weight_decay);
      k.step_size = static_cast<float>(group.lr / slowing);
      return k;
    });
    optimizer_update<AdagradUpdate>(context, kernel_segments(segments, scalars, {StateId::kSum}), dtypes, groups);
  }

 private:
  OptimizerOptions options_;
};

}  // namespace

std::unique_ptr<OptimizerRule> make_adagrad_rule(const OptimizerOptions& options) {
  return std::make_unique<AdagradRule>(options);
}

}  // namespace zerofleet
