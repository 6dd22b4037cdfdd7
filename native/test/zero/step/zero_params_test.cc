// Frozen and unused parameters, and parameter groups.
#include <doctest/doctest.h>

#include <mutex>
#include <vector>

#include "test/zero/fake_job.h"
#include "test/zero/full_state.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

FakeJob job_with_rules(const std::vector<ParamGroupRule>& rules) {
  FakeJob job;
  job.options.param_groups = resolve_param_groups(job.specs, rules, job.options.optimizer.weight_decay);
  return job;
}

FullState state_after(const FakeJob& job, int world_size, int num_steps) {
  FullState state(job.specs);
  std::mutex mutex;
  job.on_ranks(world_size, [&](ZeroOptimizer& zero, Communicator&) {
    zero.initialize(5);
    for (int step = 0; step < num_steps; ++step) job.run_step(zero, step);
    const std::lock_guard lock(mutex);
    state.save(zero);
  });
  return state;
}

}  // namespace

TEST_CASE("frozen parameters keep their values and have no moments; the others train as if they were alone") {
  FakeJob job = job_with_rules({{"big", 1, {}, true}, {"norm", 1, {}, true}});
  const auto expected = job.digests(1, 3);
  for (const int world_size : {2, 3, 8}) CHECK(job.digests(world_size, 3) == expected);
  CHECK(expected != FakeJob().digests(1, 3));
  FullState before = state_after(job, 2, 0), after = state_after(job, 3, 3);
  for (std::size_t param = 0; param < job.specs.size(); ++param) {
    CHECK(after.has(StateId::kMaster, param));
    CHECK(after.has(StateId::kExpAvg, param) == !job.is_frozen(param));
    CHECK((after.array(StateId::kMaster, param) == before.array(StateId::kMaster, param)) == job.is_frozen(param));
  }
}

TEST_CASE("frozen parameters are on every rank in compute dtype, and their gradients are refused") {
  FakeJob job = job_with_rules({{"square", 1, {}, true}});
  job.options.param_dtype = DType::kF32;
  FullState state = state_after(job, 1, 0);
  job.on_ranks(3, [&](ZeroOptimizer& zero, Communicator&) {
    zero.initialize(5);
    job.run_step(zero, 0);
    const auto* values = reinterpret_cast<const float*>(zero.params()[2]);
    CHECK(std::vector<float>(values, values + 4096) == state.array(StateId::kMaster, 2));
    zero.begin_leaf(zero.leaves().front());
    CHECK(code_of([&] { zero.add_grad(2, std::vector<float>(4096)); }) == "gradient_of_frozen");
  });
}

TEST_CASE("unused parameters: a gradient that does not come is an error") {
  for (const std::int64_t num_lanes : {3, 8}) {
    FakeJob job;
    job.options.num_lanes = num_lanes;
    job.change = [](std::int64_t, std::int64_t leaf, std::size_t param, std::vector<float>&) {
      return leaf != 1 || param != 4;
    };
    CHECK(code_of([&] { job.digests(1, 1); }) == "gradient_missing");
  }
}

TEST_CASE("groups: a rate of half for all is half the rate; a group at rate 0 stands still, whatever the world size") {
  FakeJob half = job_with_rules({{"*", 0.5, {}, false}});
  FakeJob slow;
  const auto with_lr = [](const FakeJob& job, double lr) {
    Digest128 sum;
    std::mutex mutex;
    job.on_ranks(2, [&](ZeroOptimizer& zero, Communicator&) {
      zero.initialize(5);
      for (int step = 0; step < 3; ++step) {
        for (const std::int64_t leaf : zero.leaves()) job.run_leaf(zero, step, leaf);
        zero.step({lr, 0});
      }
      const std::lock_guard lock(mutex);
      sum += zero.digest_part();
    });
    return sum.to_hex();
  };
  CHECK(with_lr(half, 0.02) == with_lr(slow, 0.01));
  FakeJob mixed = job_with_rules({{"big", 0, 0.5, false}, {"h*", 3, {}, false}, {"norm", 1, 0.2, false}});
  const auto expected = mixed.digests(1, 3);
  for (const int world_size : {2, 5}) CHECK(mixed.digests(world_size, 3) == expected);
  FullState before = state_after(mixed, 1, 0), after = state_after(mixed, 2, 3), usual = state_after(slow, 2, 3);
  CHECK(after.array(StateId::kMaster, 3) == before.array(StateId::kMaster, 3));
  CHECK(after.array(StateId::kExpAvg, 3) == usual.array(StateId::kExpAvg, 3));
  CHECK(after.array(StateId::kMaster, 0) == usual.array(StateId::kMaster, 0));
  CHECK(after.array(StateId::kMaster, 1) != usual.array(StateId::kMaster, 1));
  CHECK(after.array(StateId::kMaster, 5) != usual.array(StateId::kMaster, 5));
}

TEST_CASE("groups of another model are refused, and so is a model of which nothing is trained") {
  FakeJob job = job_with_rules({});
  job.options.param_groups.settings.pop_back();
  CHECK(code_of([&] { job.digests(1, 1); }) == "invalid_argument");
  job = job_with_rules({});
  job.options.param_groups.settings[0].group = 2;
  CHECK(code_of([&] { job.digests(1, 1); }) == "invalid_argument");
  job = job_with_rules({});
  for (ParamSettings& settings : job.options.param_groups.settings) settings.frozen = true;
  CHECK(code_of([&] { job.digests(1, 1); }) == "all_parameters_frozen");
}

TEST_CASE("values for some parameters alone are not gathered before the load that follows") {
  FakeJob job;
  job.options.param_dtype = DType::kF32;
  job.on_ranks(2, [&](ZeroOptimizer& zero, Communicator&) {
    zero.initialize(5);
    const std::size_t last = job.specs.size() - 1;
    const auto values = [&](std::size_t param) {
      const auto* first = reinterpret_cast<const float*>(zero.params()[param]);
      return std::vector<float>(first, first + job.specs[param].numel());
    };
    const std::vector<float> before = values(last), others = values(0);
    zero.initialize(6, last);
    CHECK(values(last) == before);
    zero.finish_load({}, Restore::kWeights);
    CHECK(values(last) != before);
    CHECK(values(0) == others);
  });
}
