// Mixture of experts: parts of the model that only some ranks hold.
#include <doctest/doctest.h>

#include <cmath>
#include <mutex>
#include <vector>

#include "test/zero/fake_job.h"
#include "test/zero/full_state.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

/// Two layers with four experts of two parameters each, between shared parameters.
FakeJob expert_job(int num_sets) {
  FakeJob job;
  job.specs = {{"embed", {70, 300}}};
  for (int layer = 0; layer < 2; ++layer) {
    job.specs.push_back({"norm", {300}, ParamGroup::kNoDecay, ParamInit::kOnes});
    for (int expert = 0; expert < 4; ++expert) {
      for (const std::int64_t numel : {9000, 4095}) {
        job.specs.push_back({"expert", {numel}});
        job.specs.back().expert = expert;
      }
    }
  }
  job.specs.push_back({"head", {5000}});
  job.options.expert_parallel_size = num_sets;
  return job;
}

}  // namespace

TEST_CASE("experts: digests are equal for every world size that the sets divide, in both stages") {
  for (const int num_sets : {2, 4}) {
    for (const std::int64_t num_lanes : {4, 8}) {
      FakeJob job = expert_job(num_sets);
      job.options.num_lanes = num_lanes;
      const auto expected = job.digests(num_sets, 3);
      for (int world_size = 2 * num_sets; world_size <= num_lanes; world_size += num_sets) {
        CAPTURE(world_size);
        CHECK(job.digests(world_size, 3) == expected);
      }
      job.options.bucket_bytes = 16384;
      job.reversed_arrival = false;
      job.num_threads = 2;
      CHECK(job.digests(num_lanes, 3) == expected);
    }
  }
}

TEST_CASE("experts: a rank has its set's and the shared parameters only, and every state has one owner") {
  const FakeJob job = expert_job(2);
  std::vector<std::vector<int>> owners;
  for (const ParamSpec& spec : job.specs) owners.emplace_back(static_cast<std::size_t>(spec.numel()), 0);
  std::mutex mutex;
  job.on_ranks(6, [&](ZeroOptimizer& zero, Communicator& comm) {
    zero.initialize(5);
    for (std::size_t param = 0; param < job.specs.size(); ++param) {
      const int expert = job.specs[param].expert;
      const bool is_here = expert < 0 || expert / 2 == comm.rank() % 2;
      CHECK((zero.params()[param] != nullptr) == is_here);
      if (is_here) continue;
      std::vector<float> values(10);
      CHECK(code_of([&] { zero.copy_state(StateId::kMaster, param, 0, values); }) == "slice_not_owned");
      CHECK(code_of([&] { zero.load_state(StateId::kMaster, param, 0, values); }) == "slice_not_owned");
    }
    const std::lock_guard lock(mutex);
    for (const StateRange& range : zero.state_ranges()) {
      if (range.state != StateId::kMaster) continue;
      for (std::int64_t e = range.elements.begin; e < range.elements.end; ++e) {
        ++owners[range.param][static_cast<std::size_t>(e)];
      }
    }
  });
  for (const auto& counts : owners) CHECK(std::ranges::all_of(counts, [](int count) { return count == 1; }));
}

TEST_CASE("experts: a gradient of another set is refused, and one of the own set is missed") {
  const FakeJob job = expert_job(4);
  job.on_ranks(4, [&](ZeroOptimizer& zero, Communicator& comm) {
    zero.initialize(5);
    zero.begin_leaf(comm.rank());
    for (std::size_t param = 0; param < job.specs.size(); ++param) {
      const std::vector<float> grad(static_cast<std::size_t>(job.specs[param].numel()));
      const int expert = job.specs[param].expert;
      if (expert >= 0 && expert != comm.rank())
        CHECK(code_of([&] { zero.add_grad(param, grad); }) == "invalid_argument");
      if (expert < 0) zero.add_grad(param, grad);
    }
    CHECK(code_of([&] { zero.end_leaf(0, 1); }) == "gradient_missing");
  });
}

TEST_CASE("experts: with the experts at a standstill, shared parameters train as without sets") {
  // The norm differs (it averages over sets), so clipping is off.
  const auto shared_state = [](int num_sets) {
    FakeJob job = expert_job(num_sets);
    job.options.gradient_clipping = 0;
    FullState state(job.specs);
    std::mutex mutex;
    job.on_ranks(4, [&](ZeroOptimizer& zero, Communicator&) {
      zero.initialize(5);
      for (int step = 0; step < 2; ++step) job.run_step(zero, step);
      const std::lock_guard lock(mutex);
      state.save(zero);
    });
    return state;
  };
  FullState with = shared_state(2), without = shared_state(1);
  const FakeJob job = expert_job(2);
  for (std::size_t param = 0; param < job.specs.size(); ++param) {
    for (const StateId id : {StateId::kMaster, StateId::kExpAvg, StateId::kExpAvgSq}) {
      REQUIRE(with.has(id, param));
      CHECK((with.array(id, param) == without.array(id, param)) == (job.specs[param].expert < 0));
    }
  }
}

TEST_CASE("experts: the norm is that of all sets, and an infinite gradient of one expert skips the step on all ranks") {
  FakeJob job = expert_job(2);
  job.options.reduce_dtype = DType::kF32;
  double sum = 0;
  for (std::size_t param = 0; param < job.specs.size(); ++param) {
    const int expert = job.specs[param].expert;
    for (std::int64_t e = 0; e < job.specs[param].numel(); ++e) {
      double grad = 0;
      for (int leaf = 0; leaf < (expert < 0 ? 8 : 4); ++leaf) grad += static_cast<double>(job.grad(0, leaf, param, e));
      sum += grad * grad;
    }
  }
  job.change = [](std::int64_t step, std::int64_t leaf, std::size_t param, std::vector<float>& grad) {
    if (step == 1 && leaf == 2 && param == 4) grad[0] = INFINITY;
    return true;
  };
  job.on_ranks(4, [&](ZeroOptimizer& zero, Communicator&) {
    zero.initialize(5);
    const double norm = std::sqrt(sum) * 64 / 480;
    CHECK(job.run_step(zero, 0).grad_norm == doctest::Approx(norm).epsilon(1e-6));
    CHECK(!job.run_step(zero, 1).finite);
    CHECK(zero.skipped_steps() == 1);
  });
}

TEST_CASE("experts: some frozen, saved on 2 ranks and loaded on 6") {
  FakeJob job = expert_job(2);
  job.options.param_groups = resolve_param_groups(job.specs, {}, 0.1);
  for (const std::size_t param : {2U, 9U, 16U}) job.options.param_groups.settings[param].frozen = true;
  const auto expected = job.digests(4, 4).back();
  FullState state(job.specs);
  std::mutex mutex;
  job.on_ranks(2, [&](ZeroOptimizer& zero, Communicator&) {
    zero.initialize(5);
    for (int step = 0; step < 2; ++step) job.run_step(zero, step);
    const std::lock_guard lock(mutex);
    state.save(zero);
  });
  Digest128 sum;
  job.on_ranks(6, [&](ZeroOptimizer& zero, Communicator&) {
    {
      const std::lock_guard lock(mutex);
      state.load(zero);
    }
    ZeroProgress progress = zero.progress();
    progress.optimizer_steps = 2;
    zero.finish_load(progress);
    for (int step = 2; step < 4; ++step) job.run_step(zero, step);
    const std::lock_guard lock(mutex);
    sum += zero.digest_part();
  });
  CHECK(sum.to_hex() == expected);
}

TEST_CASE("experts: sets without a communicator of those that share them are refused") {
  FakeJob job = expert_job(2);
  const auto failures = run_ranks(2, [&](Communicator& comm) {
    ThreadPool pool(1);
    ZeroOptimizer zero({Device{}, &pool, job.isa}, comm, job.specs, job.options);
  });
  CHECK(code_of(failures[0]) == "invalid_argument");
  CHECK(code_of(failures[1]) == "invalid_argument");
}
