#pragma once

#include <string>
#include <vector>

#include "core/device/context.h"
#include "model/objective/objective.h"
#include "model/transformer/callback_sink.h"
#include "model/transformer/transformer.h"
#include "test/devices_here.h"

namespace zerofleet::test {

struct ObjectiveCase {
  std::string name;
  ObjectiveOptions options;
};

/// Every objective, with settings that differ from the defaults.
inline std::vector<ObjectiveCase> objective_cases() {
  using Kind = ObjectiveKind;
  return {{"dpo", {Kind::kDpo, 0.1}},
          {"cdpo", {Kind::kDpo, 0.3, 0.15}},
          {"ipo", {Kind::kIpo, 0.4}},
          {"orpo", {Kind::kOrpo, 0.7}},
          {"simpo", {Kind::kSimpo, 2.0, 0, 0.6}},
          {"kto", {Kind::kKto, 0.2, 0, 0, 1.25, 0.75}}};
}

/// Inputs of an objective for a leaf of four sequences; those that it does not use are empty.
inline ObjectiveLeaf leaf_for(const ObjectiveOptions& options, std::span<const double> reference, double kl) {
  static constexpr std::uint8_t kDesirable[] = {1, 0, 0, 1};
  ObjectiveLeaf leaf;
  if (options.has_reference()) leaf.reference = reference;
  if (!options.has_pairs()) leaf.desirable = kDesirable;
  if (!options.has_pairs()) leaf.kl = kl;
  return leaf;
}

struct ObjectivePass {
  LeafResult result;
  ObjectiveResult objective;
  std::vector<SequenceScore> scores;
  std::vector<std::vector<float>> grads;  // of each parameter
};

inline ObjectivePass objective_pass(Transformer& model, const Context& ctx, std::size_t num_params,
                                    const LeafInput& input, const ObjectiveOptions& options,
                                    const ObjectiveLeaf& leaf) {
  ObjectivePass pass;
  pass.grads.resize(num_params);
  const GradCallback on_grad = [&](std::size_t param, std::span<const float> grad) {
    pass.grads[param] = fetched(ctx, grad);
  };
  CallbackSink sink(on_grad);
  const auto objective = [&](std::span<const SequenceScore> scores) {
    pass.scores.assign(scores.begin(), scores.end());
    pass.objective = evaluate(options, scores, leaf);
    return pass.objective.factors;
  };
  pass.result = model.forward_backward(input, objective, 1.0F, sink);
  return pass;
}

}  // namespace zerofleet::test
