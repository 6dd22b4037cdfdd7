#include "model/objective/pass_loss.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "test/error_code.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

// Two rows of three tokens; ratios below, within and above a clip of [0.8, 1.28], advantages of both signs.
const std::vector<std::int32_t> kTargets{4, -100, 2, 0, 1, 3};
const std::vector<float> kLogProbs{-1.5F, 7, -0.25F, -2, -3, -0.5F}, kDrawn{-1, 9, -0.3F, -2.5F, -2.25F, -1},
    kAdvantages{0.5F, 9, -2, 1.5F, -0.75F, -1}, kWeights{0.5F, 9, 0, 2, 1, 0.25F},
    kBase{-1.25F, 9, -2, -2, -2.5F, -0.75F};

PassLeaf leaf_of(const PassLoss& loss) {
  PassLeaf leaf{3, kTargets};
  if (loss.reads_weights()) leaf.weights = kWeights;
  if (loss.reads_log_probs()) leaf.log_probs = kDrawn;
  if (loss.reads_advantages()) leaf.advantages = kAdvantages;
  if (loss.has_penalty()) leaf.base_log_probs = kBase;
  return leaf;
}

std::vector<PassLoss> differentiable_losses() {
  using Kind = PassLossKind;
  return {{Kind::kCrossEntropy},
          {Kind::kImportanceSampling},
          {Kind::kPpo, 0.2, 0.28},
          {Kind::kPpo, 0.2, 0.28, 0.3},
          {Kind::kDpo, 0, 0, 0.3}};
}

}  // namespace

TEST_CASE("pass losses: derivatives are the slopes of the loss") {
  constexpr float kStep = 1.0F / 4096;
  for (const PassLoss& loss : differentiable_losses()) {
    CAPTURE(static_cast<int>(loss.kind));
    const PassLossResult at = evaluate(loss, kLogProbs, leaf_of(loss));
    CHECK(at.sums.num_targets == 5);
    for (std::size_t token = 0; token < kTargets.size(); ++token) {
      std::vector<float> above = kLogProbs, below = kLogProbs;
      above[token] += kStep;
      below[token] -= kStep;
      const double rise =
          evaluate(loss, above, leaf_of(loss)).sums.loss - evaluate(loss, below, leaf_of(loss)).sums.loss;
      CHECK(at.derivatives[token] == doctest::Approx(rise / (2 * static_cast<double>(kStep))).epsilon(1e-5));
    }
  }
}

TEST_CASE("pass losses: PPO stops where clipping lowers the gain, CISPO goes on with a clipped factor") {
  const PassLoss ppo{PassLossKind::kPpo, 0.2, 0.28}, cispo{PassLossKind::kCispo, 0.2, 0.28};
  const PassLossResult of_ppo = evaluate(ppo, kLogProbs, leaf_of(ppo));
  CHECK(of_ppo.sums.num_clipped == 2);  // tokens 3 and 4
  CHECK(of_ppo.derivatives[3] == 0);
  CHECK(of_ppo.derivatives[4] == 0);
  CHECK(of_ppo.derivatives[0] == doctest::Approx(-std::exp(-0.5) * 0.5));
  const PassLossResult of_cispo = evaluate(cispo, kLogProbs, leaf_of(cispo));
  CHECK(of_cispo.sums.num_clipped == 4);
  CHECK(of_cispo.derivatives[0] == doctest::Approx(-0.8 * 0.5));
  CHECK(of_cispo.derivatives[3] == doctest::Approx(-1.28 * 1.5));
  CHECK(of_cispo.derivatives[4] == doctest::Approx(0.8 * 0.75));
  CHECK(of_cispo.derivatives[1] == 0);
}

TEST_CASE("pass losses: cross entropy without weights is the usual one") {
  const PassLoss loss{PassLossKind::kCrossEntropy};
  const PassLossResult result = evaluate(loss, kLogProbs, {3, kTargets});
  CHECK(result.sums.loss == 1.5 + 0.25 + 2 + 3 + 0.5);
  CHECK(result.derivatives == std::vector<double>{-1, 0, -1, -1, -1, -1});
}

TEST_CASE("pass losses: a penalty adds its weighted estimate of the divergence") {
  const PassLoss without{PassLossKind::kCispo, 0.2, 0.28}, with{PassLossKind::kCispo, 0.2, 0.28, 0.5};
  const PassLossResult before = evaluate(without, kLogProbs, leaf_of(without));
  PassLeaf leaf = leaf_of(with);
  const PassLossResult result = evaluate(with, kLogProbs, leaf);
  double kl = 0, weighted = 0;
  for (const std::size_t at : {0, 2, 3, 4, 5}) {
    const auto difference = static_cast<double>(kBase[at] - kLogProbs[at]);
    const double ratio = std::exp(static_cast<double>(kLogProbs[at] - kDrawn[at]));
    const double estimate = ratio * (std::exp(difference) - difference - 1);
    kl += estimate;
    weighted += static_cast<double>(kWeights[at]) * estimate;
    CHECK(result.derivatives[at] - before.derivatives[at] ==
          doctest::Approx(-0.5 * static_cast<double>(kWeights[at]) * ratio * difference));
  }
  CHECK(result.sums.kl == doctest::Approx(kl));
  CHECK(result.sums.loss == doctest::Approx(before.sums.loss + 0.5 * weighted));
  leaf.weights = {};
  CHECK(evaluate(with, kLogProbs, leaf).sums.loss == doctest::Approx(before.sums.loss + 0.5 * kl));
}

TEST_CASE("pass losses: what is not a number stays visible") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const PassLoss& loss : differentiable_losses()) {
    std::vector<float> log_probs = kLogProbs;
    log_probs[4] = nan;
    const PassLossResult result = evaluate(loss, log_probs, leaf_of(loss));
    CHECK(std::isnan(result.sums.loss));
    if (loss.kind != PassLossKind::kCrossEntropy) CHECK(std::isnan(result.derivatives[4]));
  }
}

TEST_CASE("pass losses: settings that cannot be are refused") {
  using Kind = PassLossKind;
  for (const PassLoss& wrong :
       {PassLoss{Kind::kPpo, -0.1, 0.2}, PassLoss{Kind::kPpo, 0.2, NAN}, PassLoss{Kind::kCispo, 0.2, -1},
        PassLoss{Kind::kPpo, 0.2, 0.2, -1}, PassLoss{Kind::kDpo}, PassLoss{Kind::kDpo, 0, 0, NAN}})
    CHECK(code_of([&] { validate(wrong); }) == "invalid_argument");
  for (const PassLoss& loss : differentiable_losses()) CHECK(code_of([&] { validate(loss); }) == "none");
}
