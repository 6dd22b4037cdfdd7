// Steps of several passes: sums instead of means, and fewer leaves than ranks.
#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "test/zero/fake_job.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

using Passes = std::vector<std::int64_t>;

constexpr int kSteps = 3;

/// A FakeJob whose gradients are scaled so that their sum is the mean of the usual step.
struct PassesJob : FakeJob {
  PassesJob() {
    options.grad_unit *= 60.0 * static_cast<double>(options.num_leaves);
    options.has_passes = true;
    options.param_groups = resolve_param_groups(specs, {}, options.optimizer.weight_decay, true);
  }

  std::vector<std::string> digests_of(int world_size, const Passes& passes) const {
    return digests(world_size, kSteps, [&](ZeroOptimizer& zero, int step) {
      run_passes(zero, step, passes);
      zero.step({1e-2});
    });
  }
};

/// The digest after one step with these settings.
std::string updated(const PassesJob& job, const UpdateSettings& settings) {
  return job
      .digests(1, 1,
               [&](ZeroOptimizer& zero, int step) {
                 job.run_passes(zero, step, Passes{2});
                 zero.step({.lr = 1e-2, .update = settings});
               })
      .front();
}

}  // namespace

TEST_CASE("passes: a step of one pass has the bits of a step of its leaves") {
  for (const std::int64_t lane_group : {1, 3}) {
    FakeJob plain;
    PassesJob job;
    plain.options.lane_group = job.options.lane_group = lane_group;
    const auto expected = plain.digests(1, kSteps);
    for (const int world_size : {1, 2, 3}) CHECK(job.digests_of(world_size, {8}) == expected);
  }
}

TEST_CASE("passes: their terms follow one another in the sum, on any number of ranks, with fewer leaves than ranks") {
  PassesJob job;
  const auto expected = FakeJob().digests(1, kSteps);
  for (const int world_size : {1, 2, 3, 5}) {
    CAPTURE(world_size);
    CHECK(job.digests_of(world_size, {5, 1, 2}) == expected);
    CHECK(job.digests_of(world_size, {1, 1, 6}) == expected);
  }
}

TEST_CASE("passes: groups of lanes end with a pass") {
  PassesJob job;
  job.options.lane_group = 2;
  const auto expected = job.digests_of(1, {5, 1, 2});
  CHECK(job.digests_of(1, {4, 2, 2}) != expected);
  for (const int world_size : {2, 3, 4}) {
    CAPTURE(world_size);
    CHECK(job.digests_of(world_size, {5, 1, 2}) == expected);
  }
}

TEST_CASE("passes: dropped ones leave nothing behind, and a step without any is refused") {
  PassesJob job;
  const auto expected = job.digests_of(1, {3, 4});
  const auto dropping = [&](ZeroOptimizer& zero, int step) {
    CHECK(code_of([&] { zero.step({1e-2}); }) == "no_gradients");
    job.run_passes(zero, step + 100, Passes{8, 2});
    zero.drop_passes();
    CHECK(code_of([&] { zero.step({1e-2}); }) == "no_gradients");
    job.run_passes(zero, step, Passes{3, 4});
    CHECK(zero.step({1e-2}).finite);
  };
  for (const int world_size : {1, 3}) CHECK(job.digests(world_size, kSteps, dropping) == expected);
}

TEST_CASE("passes: the settings of an update are those of a job with them") {
  PassesJob job, other;
  const UpdateSettings settings{0.7, 0.8, 1e-5, 0.3, 0.02};
  const OptimizerOptions& defaults = job.options.optimizer;
  const UpdateSettings usual{defaults.beta1, defaults.beta2, defaults.eps, defaults.weight_decay,
                             static_cast<double>(job.options.gradient_clipping)};
  other.options.optimizer.beta1 = settings.beta1;
  other.options.optimizer.beta2 = settings.beta2;
  other.options.optimizer.eps = settings.eps;
  other.options.gradient_clipping = static_cast<float>(settings.gradient_clipping);
  other.options.param_groups = resolve_param_groups(other.specs, {}, settings.weight_decay, true);
  const auto without = [](const PassesJob& each) {
    return each.digests(1, 1, [&](ZeroOptimizer& zero, int step) {
      each.run_passes(zero, step, Passes{2});
      zero.step({1e-2});
    });
  };
  CHECK(updated(job, usual) == without(job).front());
  UpdateSettings rounded = settings;
  rounded.gradient_clipping = static_cast<double>(other.options.gradient_clipping);
  CHECK(updated(job, rounded) == without(other).front());
  CHECK(updated(job, usual) != updated(job, rounded));
}

TEST_CASE("passes: a general weight decay of 0 does not spread to parameters without one") {
  PassesJob job, other;
  job.options.param_groups = resolve_param_groups(job.specs, {}, 0, true);
  UpdateSettings settings{0.9, 0.95, 1e-8, 0.1, 1.0};
  CHECK(updated(job, settings) == updated(other, settings));
}

TEST_CASE("passes: calls out of order and invalid settings are refused, and change nothing") {
  PassesJob job;
  const auto expected = job.digests_of(1, {2, 1});
  const auto digests = job.digests(1, kSteps, [&](ZeroOptimizer& zero, int step) {
    CHECK(code_of([&] { zero.begin_pass(0); }) == "invalid_argument");
    CHECK(code_of([&] { zero.begin_pass(9); }) == "invalid_argument");
    zero.begin_pass(2);
    CHECK(code_of([&] { zero.begin_pass(2); }) == "leaf_out_of_order");
    CHECK(code_of([&] { zero.end_pass(); }) == "leaf_out_of_order");
    CHECK(code_of([&] { zero.step({1e-2}); }) == "leaf_out_of_order");
    for (const std::int64_t leaf : {0, 1}) job.run_leaf(zero, step, leaf);
    zero.end_pass();
    CHECK(code_of([&] { zero.begin_leaf(2); }) == "leaf_out_of_order");
    zero.begin_pass(1);
    job.run_leaf(zero, step, 0, 2);
    zero.end_pass();
    for (const UpdateSettings& wrong : {UpdateSettings{1.0}, UpdateSettings{0.9, 0.95, 0.0},
                                        UpdateSettings{0.9, 0.95, 1e-8, -1.0}, UpdateSettings{0.9, 0.95, 1e-8, 0, -1}})
      CHECK(code_of([&] { zero.step({.lr = 1e-2, .update = wrong}); }) == "invalid_argument");
    zero.step({1e-2});
  });
  CHECK(digests == expected);
  FakeJob plain;
  plain.on_ranks(1, [&](ZeroOptimizer& zero, Communicator&) {
    CHECK(code_of([&] { zero.begin_pass(2); }) == "invalid_argument");
    for (const std::int64_t leaf : zero.leaves()) plain.run_leaf(zero, 0, leaf);
    CHECK(code_of([&] { zero.step({.lr = 1e-2, .update = UpdateSettings{}}); }) == "invalid_argument");
  });
  plain.options.has_passes = true;
  plain.options.num_lanes = 2;
  CHECK(code_of([&] { plain.on_ranks(1, [](ZeroOptimizer&, Communicator&) {}); }) == "invalid_argument");
}
