#include <utility>

#include "zero/optimizer/rules/rules.h"

namespace zerofleet {
namespace {

/// Adds the state kEma to a rule: ema += (1 - decay)(master - ema) after each update. The state begins with zeros, and
/// the first update has the weight 1, so ema is then exactly the master: as in torch.optim.swa_utils.AveragedModel,
/// whose first call copies. No load has to make the average from a master that may still change.
class EmaRule final : public OptimizerRule {
 public:
  EmaRule(std::unique_ptr<OptimizerRule> rule, double decay)
      : rule_(std::move(rule)),
        states_(rule_->states().begin(), rule_->states().end()),
        weight_(static_cast<float>(1.0 - decay)) {
    states_.push_back(StateId::kEma);
  }

  std::span<const StateId> states() const override { return states_; }
  float initial_value(StateId state) const override { return state == StateId::kEma ? 0 : rule_->initial_value(state); }
  bool needs_param_norms() const override { return rule_->needs_param_norms(); }

  void prepare(const Context& context, std::span<const UpdateSegment> segments, const OptimizerDTypes& dtypes,
               const UpdateScalars& scalars, std::span<double> weight_sums,
               std::span<double> update_sums) const override {
    rule_->prepare(context, segments, dtypes, scalars, weight_sums, update_sums);
  }

  float trust_ratio(double weight_norm, double update_norm) const override {
    return rule_->trust_ratio(weight_norm, update_norm);
  }

  void update(const Context& context, std::span<const UpdateSegment> segments, const OptimizerDTypes& dtypes,
              const UpdateScalars& scalars) const override {
    UpdateScalars averaged = scalars;
    averaged.ema_weight = scalars.step == 1 ? 1.0F : weight_;
    rule_->update(context, segments, dtypes, averaged);
  }

 private:
  std::unique_ptr<OptimizerRule> rule_;
  std::vector<StateId> states_;
  float weight_;
};

}  // namespace

std::unique_ptr<OptimizerRule> make_ema_rule(std::unique_ptr<OptimizerRule> rule, double decay) {
  return std::make_unique<EmaRule>(std::move(rule), decay);
}

}  // namespace zerofleet
