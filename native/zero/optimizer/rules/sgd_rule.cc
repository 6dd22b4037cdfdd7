#include <array>

#include "kernels/optimizer/optimizer_update.h"
#include "zero/optimizer/rules/rules.h"

namespace zerofleet {
namespace {

constexpr std::array kSgdStates{StateId::kMaster, StateId::kMomentumBuffer};

class SgdRule final : public OptimizerRule {
 public:
  explicit SgdRule(const OptimizerOptions& options) : options_(options) {}

  std::span<const StateId> states() const override {
    return std::span(kSgdStates).first(options_.momentum == 0 ? 1 : kSgdStates.size());
  }

  void update(const Context& context, std::span<const UpdateSegment> segments, const OptimizerDTypes& dtypes,
              const UpdateScalars& scalars) const override {
    SgdScalars k;
    k.grad_factor = scalars.grad_factor;
    k.momentum = static_cast<float>(options_.momentum);
    // The first gradient enters the empty buffer whole, as in torch.optim.SGD.
    k.one_minus_dampening = scalars.step == 1 ? 1.0F : static_cast<float>(1.0 - options_.dampening);
    const auto groups = per_group(scalars, [&](const GroupScalars& group) {
      k.weight_decay = static_cast<float>(group.weight_decay);
      k.lr = static_cast<float>(group.lr);
      return k;
    });
    const auto arrays = kernel_segments(segments, scalars, {StateId::kMomentumBuffer});
    if (options_.momentum == 0) return optimizer_update<SgdUpdate>(context, arrays, dtypes, groups);
    if (options_.nesterov) return optimizer_update<SgdNesterovUpdate>(context, arrays, dtypes, groups);
    optimizer_update<SgdMomentumUpdate>(context, arrays, dtypes, groups);
  }

 private:
  OptimizerOptions options_;
};

}  // namespace

std::unique_ptr<OptimizerRule> make_sgd_rule(const OptimizerOptions& options) {
  return std::make_unique<SgdRule>(options);
}

}  // namespace zerofleet
