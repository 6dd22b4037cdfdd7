// A model whose pieces lie on model-parallel ranks: ZeroOptimizer needs only the norm of the whole.
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "test/zero/fake_job.h"
#include "zero/step/zero_optimizer.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr int kModelParallel = 3, kDataParallel = 2, kParallelSteps = 3;
constexpr std::int64_t kPieceNumel = 4000;

/// Parameters by number: pieces 0 … kModelParallel - 1 of the spread parameter, then those that all model-parallel
/// ranks have.
float grad_value(int step, std::int64_t leaf, int param, std::int64_t element) {
  const auto bits = philox(static_cast<std::uint64_t>(step * 100 + leaf),
                           {static_cast<std::uint32_t>(element), static_cast<std::uint32_t>(param), 0, 0});
  return static_cast<float>(uniform_open(bits[0]) - 0.5);
}

float first_value(int param, std::int64_t element) { return grad_value(99, 0, param, element); }

using Values = std::map<int, std::vector<float>>;  // by number of the parameter

/// A rank's training of the parameters `numbers`; the last of them is not spread.
struct RankJob {
  std::vector<int> numbers;
  double bad = 0;  // when not 0, one element of the first gradient of step 1

  ZeroOptions options() const {
    ZeroOptions options;
    options.param_dtype = options.reduce_dtype = DType::kF32;
    options.num_leaves = kDataParallel;
    options.gradient_clipping = 0.25F;
    options.param_groups.groups = {{1, 0.1}};
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      options.param_groups.settings.push_back({0, false, i + 1 < numbers.size()});
    }
    return options;
  }

  /// The summaries of the steps; the master goes to `masters`.
  std::vector<StepSummary> run(const ZeroComms& comms, std::mutex& mutex, Values& masters) const {
    std::vector<ParamSpec> specs;
    for (const int number : numbers) specs.push_back({std::to_string(number), {kPieceNumel}});
    ThreadPool pool(1);
    ZeroOptimizer zero({Device{}, &pool, best_cpu_isa()}, comms, specs, options());
    zero.initialize(1);
    std::vector<float> values(static_cast<std::size_t>(kPieceNumel));
    for (const StateRange& range : zero.state_ranges()) {
      if (range.state != StateId::kMaster) continue;
      values.resize(static_cast<std::size_t>(range.elements.size()));
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = first_value(numbers[range.param], range.elements.begin + static_cast<std::int64_t>(i));
      }
      zero.load_state(range.state, range.param, range.elements.begin, values);
    }
    zero.finish_load(zero.progress());
    std::vector<StepSummary> summaries;
    for (int step = 0; step < kParallelSteps; ++step) summaries.push_back(run_step(zero, step, comms.world.rank()));
    const std::lock_guard lock(mutex);
    for (const StateRange& range : zero.state_ranges()) {
      if (range.state != StateId::kMaster) continue;
      auto& master = masters[numbers[range.param]];
      master.resize(static_cast<std::size_t>(kPieceNumel));
      zero.copy_state(range.state, range.param, range.elements.begin,
                      std::span(master).subspan(static_cast<std::size_t>(range.elements.begin),
                                                static_cast<std::size_t>(range.elements.size())));
    }
    return summaries;
  }

  StepSummary run_step(ZeroOptimizer& zero, int step, int rank) const {
    std::vector<float> grad(static_cast<std::size_t>(kPieceNumel));
    for (const std::int64_t leaf : zero.leaves()) {
      zero.begin_leaf(leaf);
      for (std::size_t param = 0; param < numbers.size(); ++param) {
        for (std::size_t e = 0; e < grad.size(); ++e) {
          grad[e] = grad_value(step, leaf, numbers[param], static_cast<std::int64_t>(e));
        }
        if (bad != 0 && step == 1 && param == 0 && rank == 1) grad[17] = static_cast<float>(bad);
        zero.add_grad(param, grad);
      }
      zero.end_leaf(1, 10);
    }
    return zero.step({1e-2, 0});
  }
};

/// All ranks of the model-parallel job; their summaries in the order of (model-parallel rank, data-parallel rank).
std::vector<std::vector<StepSummary>> run_model_parallel(double bad, Values& masters) {
  std::vector<std::vector<std::unique_ptr<Communicator>>> across;
  for (int d = 0; d < kDataParallel; ++d) across.push_back(make_thread_comms(kModelParallel, std::chrono::seconds(60)));
  std::vector<std::vector<StepSummary>> summaries(kModelParallel * kDataParallel);
  std::vector<std::vector<std::exception_ptr>> failures(kModelParallel);
  std::vector<std::thread> worlds;
  std::mutex mutex;
  for (int m = 0; m < kModelParallel; ++m) {
    worlds.emplace_back([&, m] {
      const RankJob job{{m, kModelParallel}, m == 1 ? bad : 0};
      failures[static_cast<std::size_t>(m)] = run_ranks(kDataParallel, [&, job](Communicator& world) {
        const auto d = static_cast<std::size_t>(world.rank());
        const auto pieces = std::move(across[d][static_cast<std::size_t>(m)]);  // gone when this rank is
        ZeroComms comms(world);
        comms.model_parallel = pieces.get();
        summaries[static_cast<std::size_t>(m * kDataParallel) + d] = job.run(comms, mutex, masters);
      });
    });
  }
  for (auto& world : worlds) world.join();
  for (const auto& of_world : failures) rethrow_first(of_world);
  return summaries;
}

}  // namespace

TEST_CASE("model-parallel ranks clip by the norm of the whole model and end with its bits") {
  Values expected, masters;
  std::vector<StepSummary> whole;
  std::mutex mutex;
  rethrow_first(run_ranks(kDataParallel, [&](Communicator& world) {
    const RankJob job{{0, 1, 2, kModelParallel}};
    const auto summaries = job.run(ZeroComms(world), mutex, expected);
    const std::lock_guard lock(mutex);
    whole = summaries;
  }));
  for (const auto& summaries : run_model_parallel(0, masters)) {
    for (std::size_t step = 0; step < whole.size(); ++step) {
      CHECK(whole[step].grad_norm > 0.25);  // clipping is at work
      CHECK(summaries[step].grad_norm == whole[step].grad_norm);
    }
  }
  CHECK(masters == expected);
}

TEST_CASE("a gradient that is not finite on one model-parallel rank makes all of them skip the step") {
  for (const double bad : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    Values masters;
    for (const auto& summaries : run_model_parallel(bad, masters)) {
      CHECK(summaries[0].finite);
      CHECK(!summaries[1].finite);
      CHECK(summaries[2].finite);
    }
  }
}
