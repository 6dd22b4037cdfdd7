#include <utility>

#include "core/error.h"
#include "zero/optimizer/rules/rules.h"

namespace zerofleet {
namespace {

std::unique_ptr<OptimizerRule> make_rule_of_type(const OptimizerOptions& options) {
  switch (options.type) {
#define ZF_CASE(type, name, constants) \
  case OptimizerType::type:            \
    return make_##name##_rule(options);
    ZF_OPTIMIZERS(ZF_CASE)
#undef ZF_CASE
  }
  throw Error("invalid_argument", "no such optimizer type");
}

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

std::unique_ptr<OptimizerRule> make_optimizer_rule(const OptimizerOptions& options) {
  validate(options);
  auto rule = make_rule_of_type(options);
  if (options.ema.decay == 0) return rule;
  return std::make_unique<EmaRule>(std::move(rule), options.ema.decay);
}

std::vector<OptimizerSegment> kernel_segments(std::span<const UpdateSegment> segments, const UpdateScalars& scalars,
                                              std::initializer_list<StateId> states) {
  std::vector<OptimizerSegment> arrays;
  arrays.reserve(segments.size());
  for (const UpdateSegment& segment : segments) {
    OptimizerSegment& array = arrays.emplace_back();
    array.master = segment.master;
    std::size_t next = 0;
    for (const StateId id : states) array.states[next++] = segment.states[static_cast<std::size_t>(id)];
    array.grad = segment.grad;
    array.params = segment.params;
    array.numel = segment.numel;
    array.group = segment.group;
    array.average = {segment.states[static_cast<std::size_t>(StateId::kEma)], scalars.ema_weight};
  }
  return arrays;
}

}  // namespace zerofleet
