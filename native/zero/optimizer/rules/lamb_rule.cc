#include <algorithm>
#include <array>
#include <cmath>

#include "core/portable_math.h"
#include "kernels/optimizer/lamb.h"
#include "zero/optimizer/rules/rules.h"
#include "zero/partition/shard_layout.h"

namespace zerofleet {
namespace {

constexpr std::array kLambStates{StateId::kMaster, StateId::kExpAvg, StateId::kExpAvgSq};

class LambRule final : public OptimizerRule {
 public:
  explicit LambRule(const OptimizerOptions& options) : options_(options) {}

  std::span<const StateId> states() const override { return kLambStates; }
  bool needs_param_norms() const override { return true; }

  void prepare(const Context& context, std::span<const UpdateSegment> segments, const OptimizerDTypes& dtypes,
               const UpdateScalars& scalars, std::span<double> weight_sums,
               std::span<double> update_sums) const override {
    std::vector<std::int64_t> first_stats;
    for (const UpdateSegment& segment : segments) first_stats.push_back(segment.first_stat);
    lamb_prepare(context, arrays_of(segments, scalars), dtypes, constants(scalars),
                 {kBlockNumel, first_stats, weight_sums, update_sums});
  }

  float trust_ratio(double weight_norm, double update_norm) const override {
    if (weight_norm == 0 || update_norm == 0) return 1;
    return static_cast<float>(std::clamp(weight_norm / update_norm, options_.min_coeff, options_.max_coeff));
  }

  void update(const Context& context, std::span<const UpdateSegment> segments, const OptimizerDTypes& dtypes,
              const UpdateScalars& scalars) const override {
    std::vector<float> trust_ratios;
    for (const UpdateSegment& segment : segments) trust_ratios.push_back(segment.trust_ratio);
    lamb_update(context, arrays_of(segments, scalars), dtypes, constants(scalars), trust_ratios);
  }

 private:
  static std::vector<OptimizerSegment> arrays_of(std::span<const UpdateSegment> segments,
                                                 const UpdateScalars& scalars) {
    return kernel_segments(segments, scalars, {StateId::kExpAvg, StateId::kExpAvgSq});
  }

  std::vector<LambScalars> constants(const UpdateScalars& scalars) const {
    const double correction1 = 1.0 - portable::power(options_.beta1, scalars.step),
                 correction2 = 1.0 - portable::power(options_.beta2, scalars.step);
    const bool of_update = options_.bias_correction == BiasCorrection::kUpdate;
    const bool of_step = options_.bias_correction == BiasCorrection::kStepSize;
    const double lr_factor = of_step ? std::sqrt(correction2) / correction1 : 1.0;
    LambScalars k;
    k.grad_factor = scalars.grad_factor;
    k.one_minus_beta1 = static_cast<float>(1.0 - options_.beta1);
    k.beta2 = static_cast<float>(options_.beta2);
    k.one_minus_beta2 = static_cast<float>(1.0 - options_.beta2);
    k.eps = static_cast<float>(options_.eps);
    k.inv_correction1 = of_update ? static_cast<float>(1.0 / correction1) : 1.0F;
    k.inv_sqrt_correction2 = of_update ? static_cast<float>(1.0 / std::sqrt(correction2)) : 1.0F;
    return per_group(scalars, [&](const GroupScalars& group) {
      k.weight_decay = static_cast<float>(group.weight_decay);
      k.lr = static_cast<float>(group.lr * lr_factor);
      return k;
    });
  }

  OptimizerOptions options_;
};

}  // namespace

std::unique_ptr<OptimizerRule> make_lamb_rule(const OptimizerOptions& options) {
  return std::make_unique<LambRule>(options);
}

}  // namespace zerofleet
