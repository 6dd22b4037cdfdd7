#pragma once

#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "core/device/transfer.h"
#include "zero/optimizer/optimizer_rule.h"
#include "zero/partition/shard_layout.h"

namespace zerofleet::bench {

/// A shard of the common kind: master, states and gradient in fp32, parameters in bf16.
class OptimizerRun {
 public:
  OptimizerRun(const Context& context, OptimizerType type, std::int64_t numel, double ema_decay = 0)
      : context_(context), rule_(make_optimizer_rule(options_of(type, ema_decay))) {
    const auto bytes = static_cast<std::size_t>(numel) * sizeof(float);
    segment_.numel = numel;
    // Skewed as the ZeRO core has them.
    for (const StateId id : rule_->states()) {
      Buffer& array = arrays_.emplace_back(context.device, bytes, static_cast<int>(id));
      if (id != StateId::kMaster) segment_.states[static_cast<std::size_t>(id)] = array.as<float>().data();
    }
    segment_.master = arrays_.front().data();
    arrays_.emplace_back(context.device, bytes, 9);
    const std::vector<float> grads(static_cast<std::size_t>(numel), 0.01F);
    copy_bytes(context, {arrays_.back().data(), bytes}, context.device, std::as_bytes(std::span(grads)), Device{});
    segment_.grad = arrays_.back().data();
    segment_.params = arrays_.emplace_back(context.device, bytes / 2).data();
    weight_sums_.resize(static_cast<std::size_t>(numel / kBlockNumel));
    update_sums_.resize(weight_sums_.size());
  }

  /// Steps like ShardedOptimizer on a rank that owns everything.
  void step() {
    const GroupScalars group{1e-3, 0.1};
    const UpdateScalars scalars{{&group, 1}, 1.0F, ++steps_};
    const OptimizerDTypes dtypes;
    if (rule_->needs_param_norms()) {
      rule_->prepare(context_, {&segment_, 1}, dtypes, scalars, weight_sums_, update_sums_);
      segment_.trust_ratio = rule_->trust_ratio(norm_of(weight_sums_), norm_of(update_sums_));
    }
    rule_->update(context_, {&segment_, 1}, dtypes, scalars);
  }

  /// Per element: each array read once and, but for the gradient, written once; the parameters are written only. With
  /// norms, master and moments are read once more, and the moments are written in the first pass.
  std::int64_t bytes_per_param() const {
    const auto num_states = static_cast<std::int64_t>(rule_->states().size());
    const std::int64_t in_two_passes = num_states - (rule_->states().back() == StateId::kEma ? 1 : 0);
    const std::int64_t again = rule_->needs_param_norms() ? in_two_passes * 4 : 0;
    return 4 * (2 * num_states + 1) + 2 + again;
  }

  /// Master weights that the last step wrote, in memory of the context's device.
  std::span<float> master() { return arrays_.front().as<float>(); }

 private:
  static OptimizerOptions options_of(OptimizerType type, double ema_decay) {
    OptimizerOptions options;
    options.type = type;
    options.ema.decay = ema_decay;
    return options;
  }
  static double norm_of(const std::vector<double>& sums) {
    return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0));
  }

  Context context_;
  std::unique_ptr<OptimizerRule> rule_;
  std::vector<Buffer> arrays_;
  UpdateSegment segment_;
  std::vector<double> weight_sums_, update_sums_;
  std::int64_t steps_ = 0;
};

}  // namespace zerofleet::bench
