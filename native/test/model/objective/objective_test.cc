// Preference objectives as functions of log-probabilities; objective_golden_test.cc has their values.
#include "model/objective/objective.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

#include "test/error_code.h"
#include "test/model/objective/objective_cases.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

struct Scored {
  std::vector<SequenceScore> policy;
  std::vector<double> reference;
};

Scored random_scores(std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> mean(-3, -0.01), apart(-6, 6);
  Scored scored;
  for (int sequence = 0; sequence < 4; ++sequence) {
    const auto count = static_cast<std::int64_t>(1 + random() % 30U);
    scored.policy.push_back({mean(random) * static_cast<double>(count), count});
    scored.reference.push_back(scored.policy.back().log_prob + apart(random));
  }
  return scored;
}

ObjectiveResult evaluated(const ObjectiveOptions& options, const Scored& scored, double kl = 0.7) {
  return evaluate(options, scored.policy, leaf_for(options, scored.reference, kl));
}

std::string code_with(const ObjectiveOptions& options) {
  return code_of([&] { validate(options); });
}

}  // namespace

TEST_CASE("objectives: factors are the slopes of the loss") {
  for (const ObjectiveCase& objective : objective_cases()) {
    CAPTURE(objective.name);
    for (std::uint32_t seed = 0; seed < 50; ++seed) {
      const Scored scored = random_scores(seed);
      const ObjectiveResult at = evaluated(objective.options, scored);
      for (std::size_t sequence = 0; sequence < scored.policy.size(); ++sequence) {
        constexpr double kStep = 1e-5;
        Scored above = scored, below = scored;
        above.policy[sequence].log_prob += kStep;
        below.policy[sequence].log_prob -= kStep;
        const double slope =
            (evaluated(objective.options, above).sums.loss - evaluated(objective.options, below).sums.loss) /
            (2 * kStep);
        CHECK(std::abs(at.factors[sequence] - slope) < 1e-8 + 1e-6 * std::abs(slope));
      }
    }
  }
}

TEST_CASE("objectives: far from 0, and where a probability is 1, losses and factors are finite") {
  for (const ObjectiveCase& objective : objective_cases()) {
    CAPTURE(objective.name);
    for (const double chosen : {-1e5, -800.0, -1e-9, 0.0}) {
      for (const double rejected : {-1e5, -800.0, -1e-9, 0.0}) {
        const Scored scored{{{chosen, 7}, {rejected, 3}, {rejected, 3}, {chosen, 7}}, {-40, -50, -60, -70}};
        const ObjectiveResult result = evaluated(objective.options, scored);
        CHECK(std::isfinite(result.sums.loss));
        for (const double factor : result.factors) CHECK(std::isfinite(factor));
      }
    }
  }
}

TEST_CASE("objectives: NaN is not hidden") {
  for (const ObjectiveCase& objective : objective_cases()) {
    CAPTURE(objective.name);
    Scored scored = random_scores(3);
    scored.policy[0].log_prob = std::nan("");
    const ObjectiveResult result = evaluated(objective.options, scored);
    CHECK(std::isnan(result.sums.loss));
    CHECK(std::isnan(result.factors[0]));
    CHECK(std::isfinite(result.factors[2]));
  }
  CHECK(std::isnan(kl_estimate(std::vector<SequenceScore>{{std::nan(""), 1}}, std::vector<double>{-1})));
}

TEST_CASE("objectives: a unit's factors do not depend on the other units, nor on their order") {
  for (const ObjectiveCase& objective : objective_cases()) {
    CAPTURE(objective.name);
    const Scored scored = random_scores(1), other = random_scores(2);
    Scored changed = scored;  // the second pair is another one
    for (std::size_t sequence : {std::size_t{2}, std::size_t{3}}) {
      changed.policy[sequence] = other.policy[sequence];
      changed.reference[sequence] = other.reference[sequence];
    }
    const ObjectiveResult at = evaluated(objective.options, scored), beside = evaluated(objective.options, changed);
    CHECK(at.factors[0] == beside.factors[0]);
    CHECK(at.factors[1] == beside.factors[1]);
    if (!objective.options.has_pairs()) continue;
    Scored turned = scored;
    std::rotate(turned.policy.begin(), turned.policy.begin() + 2, turned.policy.end());
    std::rotate(turned.reference.begin(), turned.reference.begin() + 2, turned.reference.end());
    const ObjectiveResult back = evaluated(objective.options, turned);
    for (std::size_t sequence = 0; sequence < 4; ++sequence)
      CHECK(back.factors[(sequence + 2) % 4] == at.factors[sequence]);
  }
}

TEST_CASE("objectives: units without targets are none, half a pair is refused") {
  for (const ObjectiveCase& objective : objective_cases()) {
    CAPTURE(objective.name);
    Scored scored = random_scores(4);
    const std::int64_t units = evaluated(objective.options, scored).sums.num_units;
    scored.policy[2] = scored.policy[3] = {};
    const ObjectiveResult result = evaluated(objective.options, scored);
    CHECK(result.sums.num_units == units / 2);
    CHECK(result.factors[2] == 0);
    CHECK(result.factors[3] == 0);
    scored.policy[0] = {};
    CHECK(code_of([&] { evaluated(objective.options, scored); }) ==
          (objective.options.has_pairs() ? "invalid_argument" : "none"));
  }
}

TEST_CASE("objectives: metrics of leaves add up") {
  for (const ObjectiveCase& objective : objective_cases()) {
    CAPTURE(objective.name);
    const ObjectiveSums one = evaluated(objective.options, random_scores(5)).sums,
                        two = evaluated(objective.options, random_scores(6)).sums;
    ObjectiveSums both = one;
    both += two;
    CHECK(both.num_units == one.num_units + two.num_units);
    CHECK(both.loss == one.loss + two.loss);
    CHECK(both.accuracy() == doctest::Approx((one.accuracy() + two.accuracy()) / 2));
    CHECK(both.margin() == doctest::Approx((one.margin() + two.margin()) / 2));
  }
  CHECK(ObjectiveSums{}.accuracy() == 0);
  CHECK(ObjectiveSums{}.margin() == 0);
}

TEST_CASE("objectives: KTO's estimate is the mean of log-ratios of sequences with targets, but at least 0") {
  const std::vector<SequenceScore> policy{{-4, 2}, {0, 0}, {-5, 3}};
  CHECK(kl_estimate(policy, std::vector<double>{-6.0, -1.0, -8.0}) == 2.5);
  CHECK(kl_estimate(policy, std::vector<double>{-3.0, -9.0, -4.0}) == 0);
  CHECK(kl_estimate({}, {}) == 0);
  CHECK(code_of([&] { kl_estimate(policy, std::vector<double>{1.0}); }) == "invalid_argument");
}

TEST_CASE("objectives that cannot be are refused") {
  using Kind = ObjectiveKind;
  for (const ObjectiveCase& objective : objective_cases()) CHECK(code_with(objective.options) == "none");
  CHECK(code_with({Kind::kDpo, 0}) == "invalid_argument");
  CHECK(code_with({Kind::kDpo, INFINITY}) == "invalid_argument");
  CHECK(code_with({Kind::kDpo, 0.1, 0.5}) == "invalid_argument");
  CHECK(code_with({Kind::kIpo, 0.1, 0.1}) == "invalid_argument");
  CHECK(code_with({Kind::kDpo, 0.1, 0, 0.5}) == "invalid_argument");
  CHECK(code_with({Kind::kSimpo, 0.1, 0, -0.5}) == "invalid_argument");
  CHECK(code_with({Kind::kDpo, 0.1, 0, 0, 2}) == "invalid_argument");
  CHECK(code_with({Kind::kKto, 0.1, 0, 0, 1, 0}) == "invalid_argument");
  const Scored scored = random_scores(7);
  const std::vector<SequenceScore> three(scored.policy.begin(), scored.policy.begin() + 3);
  CHECK(code_of([&] { evaluate({Kind::kOrpo}, three, {}); }) == "invalid_argument");
  CHECK(code_of([&] { evaluate({Kind::kDpo}, scored.policy, {}); }) == "invalid_argument");
  CHECK(code_of([&] { evaluate({Kind::kOrpo}, scored.policy, {scored.reference}); }) == "invalid_argument");
  CHECK(code_of([&] { evaluate({Kind::kKto}, scored.policy, {scored.reference}); }) == "invalid_argument");
}
