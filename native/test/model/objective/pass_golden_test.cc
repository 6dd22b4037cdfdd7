// Losses of sessions against TRL and torch's autograd in float64.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "model/objective/pass_loss.h"
#include "model/transformer/callback_sink.h"
#include "test/devices_here.h"
#include "test/kernels/test_machine.h"
#include "test/model/golden_model.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

struct GoldenLoss {
  std::string name;
  PassLoss loss;
};

std::vector<GoldenLoss> golden_losses(const GoldenFile& golden) {
  using Kind = PassLossKind;
  const auto clipped = [&](Kind kind, const std::string& name) {
    return PassLoss{kind, golden.number(name + ".clip_low"), golden.number(name + ".clip_high")};
  };
  return {{"cross_entropy", {Kind::kCrossEntropy}},
          {"importance_sampling", {Kind::kImportanceSampling}},
          {"ppo", clipped(Kind::kPpo, "ppo")},
          {"cispo", clipped(Kind::kCispo, "cispo")},
          {"cispo_two_sided", clipped(Kind::kCispo, "cispo_two_sided")},
          {"ppo_kl",
           {Kind::kPpo, golden.number("ppo.clip_low"), golden.number("ppo.clip_high"), golden.number("ppo_kl.beta")}},
          {"dpo", {Kind::kDpo, 0, 0, golden.number("dpo.beta")}}};
}

void check_sums(const GoldenFile& golden, const GoldenLoss& golden_loss, const PassSums& sums) {
  const auto expected = [&](const char* key) {
    return doctest::Approx(golden.number(golden_loss.name + key)).epsilon(1e-5);
  };
  const PassLoss& loss = golden_loss.loss;
  const auto count = static_cast<double>(sums.num_targets);
  CHECK(sums.loss == expected(".loss"));
  if (loss.has_ratio()) CHECK(sums.ratio / count == expected(".ratio_mean"));
  if (loss.has_clipping()) {
    CHECK(sums.num_clipped > 0);
    CHECK(static_cast<double>(sums.num_clipped) / count == expected(".clipped_share"));
  }
  if (loss.has_penalty()) CHECK(sums.kl / count == expected(".kl"));
  if (!loss.has_pairs()) return;
  const double num_pairs = static_cast<double>(sums.pairs.num_units);
  CHECK(sums.pairs.accuracy() == expected(".accuracy"));
  CHECK(sums.pairs.margin() == expected(".margin"));
  CHECK(sums.pairs.reward_chosen / num_pairs == expected(".reward_chosen"));
  CHECK(sums.pairs.reward_rejected / num_pairs == expected(".reward_rejected"));
}

void check_all(const GoldenFile& golden, const Context& ctx) {
  GoldenModel golden_model(golden, ctx, DType::kF32);
  Transformer& model = golden_model.model();
  const std::vector<ParamSpec>& specs = golden_model.specs();
  const auto tokens = golden.integers("tokens"), targets = golden.integers("targets");
  const auto weights = golden.floats("weights"), drawn = golden.floats("log_probs"),
             advantages = golden.floats("advantages"), expected = golden.floats("model_log_probs"),
             base = golden.floats("base_log_probs");
  for (const GoldenLoss& each : golden_losses(golden)) {
    CAPTURE(each.name);
    const auto of_targets = each.loss.has_penalty() ? std::span<const float>{} : weights;
    const PassLeaf leaf{golden.integer("length"), targets, of_targets, drawn, advantages, base};
    PassSums sums;
    std::vector<std::vector<float>> grads(specs.size());
    const GradCallback on_grad = [&](std::size_t param, std::span<const float> grad) {
      grads[param] = fetched(ctx, grad);
    };
    CallbackSink sink(on_grad);
    const TargetObjective objective = [&](std::span<const float> log_probs) {
      for (std::size_t at = 0; at < targets.size(); ++at) {
        const auto of_target = static_cast<double>(targets[at] < 0 ? 0 : expected[at]);
        CHECK(static_cast<double>(log_probs[at]) == doctest::Approx(of_target).epsilon(1e-5));
      }
      PassLossResult result = evaluate(each.loss, log_probs, leaf);
      sums = result.sums;
      return std::move(result.derivatives);
    };
    model.forward_backward({tokens, targets}, objective, 1.0F, sink);
    check_sums(golden, each, sums);
    for (std::size_t param = 0; param < specs.size(); ++param) {
      CAPTURE(specs[param].name);
      CHECK(relative_error(grads[param], golden.floats("grad." + each.name + "." + specs[param].name)) < 1e-5);
    }
  }
}

}  // namespace

DEVICE_TEST_CASE("pass losses: fp32 losses, metrics and every gradient match TRL's and torch's within 1e-5") {
  const GoldenFile golden("passes");
  for (const Device device : cuda_devices_here()) {
    CAPTURE(to_string(device));
    DeviceMachine machine(device);
    check_all(golden, machine.ctx);
  }
  if (!cpu_is_tested()) return;
  for (const CpuIsa isa : available_isas()) {
    CAPTURE(name_of(isa));
    Machine machine(isa, 2);
    check_all(golden, machine.ctx);
  }
}
