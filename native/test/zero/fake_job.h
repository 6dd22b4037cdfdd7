#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/thread_comm.h"
#include "core/error.h"
#include "core/philox.h"
#include "test/error_code.h"
#include "test/kernels/test_machine.h"
#include "zero/step/zero_optimizer.h"

namespace zerofleet::test {

/// Runs `body` once per rank, ranks as threads, and waits for all. A rank that ends aborts its communicator. Returns
/// the exception of each rank (null for none).
inline std::vector<std::exception_ptr> run_ranks(int world_size, const std::function<void(Communicator&)>& body,
                                                 std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  auto comms = make_thread_comms(world_size, timeout);
  std::vector<std::exception_ptr> failures(comms.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < comms.size(); ++rank) {
    threads.emplace_back([&body, &failure = failures[rank], comm = std::move(comms[rank])]() mutable {
      try {
        body(*comm);
      } catch (...) {
        failure = std::current_exception();
      }
      comm.reset();
    });
  }
  for (auto& thread : threads) thread.join();
  return failures;
}

inline void rethrow_first(const std::vector<std::exception_ptr>& failures) {
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

inline std::string code_of(const std::exception_ptr& failure) {
  return failure ? code_of([&] { std::rethrow_exception(failure); }) : "none";
}

/// A training job without a model: gradients are numbers that depend on (step, leaf, parameter, element) alone.
struct FakeJob {
  // Sizes around block boundaries, one parameter larger than a small bucket, one of a single element.
  std::vector<ParamSpec> specs{{"embed", {70, 300}},
                               {"norm", {300}, ParamGroup::kNoDecay, ParamInit::kOnes},
                               {"square", {64, 64}},
                               {"big", {10, 4097}},
                               {"one", {1}, ParamGroup::kNoDecay},
                               {"head", {4095}}};
  ZeroOptions options;
  CpuIsa isa = best_cpu_isa();
  int num_threads = 1;
  bool reversed_arrival = true;  // as backward does it
  /// Changes the gradient of a parameter before it is handed in; returns whether to hand it in.
  std::function<bool(std::int64_t step, std::int64_t leaf, std::size_t param, std::vector<float>& grad)> change;

  FakeJob() {
    options.num_leaves = 8;
    options.bucket_bytes = 40000;
    options.grad_unit = 1.0 / 64;
  }

  float grad(std::int64_t step, std::int64_t leaf, std::size_t param, std::int64_t element) const {
    const auto bits = philox(static_cast<std::uint64_t>(step * 1000 + leaf),
                             {static_cast<std::uint32_t>(element), static_cast<std::uint32_t>(param), 0, 0});
    const double magnitude = element % 3 == 0 ? 1e-4 : 0.5;
    return static_cast<float>((uniform_open(bits[0]) - 0.5) * magnitude);
  }

  double loss_sum(std::int64_t step, std::int64_t leaf) const {
    return 100.0 / static_cast<double>(step + 1) + 0.1 * static_cast<double>(leaf);
  }

  bool is_frozen(std::size_t param) const {
    return !options.param_groups.settings.empty() && options.param_groups.settings[param].frozen;
  }

  /// Frozen parameters and other ranks' experts have no gradient. P leaves are one leaf of the experts. `first`: leaves
  /// of the passes before.
  void run_leaf(ZeroOptimizer& zero, std::int64_t step, std::int64_t leaf_of_pass, std::int64_t first = 0) const {
    zero.begin_leaf(leaf_of_pass);
    const std::int64_t leaf = first + leaf_of_pass;
    std::vector<float> values;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const std::size_t param = (reversed_arrival ? specs.size() - 1 - i : i + specs.size() / 2) % specs.size();
      if (is_frozen(param) || zero.params()[param] == nullptr) continue;
      const std::int64_t grad_leaf = specs[param].expert < 0 ? leaf : leaf / options.expert_parallel_size;
      values.resize(static_cast<std::size_t>(specs[param].numel()));
      for (std::size_t e = 0; e < values.size(); ++e) {
        values[e] = grad(step, grad_leaf, param, static_cast<std::int64_t>(e)) * static_cast<float>(zero.loss_scale());
      }
      if (!change || change(step, grad_leaf, param, values)) zero.add_grad(param, values);
    }
    zero.end_leaf(loss_sum(step, leaf), 60);
  }

  /// Runs the passes of a step, each with a number of leaves.
  void run_passes(ZeroOptimizer& zero, std::int64_t step, std::span<const std::int64_t> passes) const {
    std::int64_t first = 0;
    for (const std::int64_t num_leaves : passes) {
      zero.begin_pass(num_leaves);
      for (const std::int64_t leaf : zero.leaves()) run_leaf(zero, step, leaf, first);
      zero.end_pass();
      first += num_leaves;
    }
  }

  StepSummary run_step(ZeroOptimizer& zero, std::int64_t step, std::uint32_t flags = 0) const {
    for (const std::int64_t leaf : zero.leaves()) run_leaf(zero, step, leaf);
    return zero.step({1e-2, flags});
  }

  /// Runs `body` on every rank with an optimizer of its own; rethrows the first failure.
  void on_ranks(int world_size, const std::function<void(ZeroOptimizer&, Communicator&)>& body) const {
    rethrow_first(failures_on_ranks(world_size, body));
  }

  std::vector<std::exception_ptr> failures_on_ranks(
      int world_size, const std::function<void(ZeroOptimizer&, Communicator&)>& body) const {
    auto groups = make_thread_groups(world_size, options.expert_parallel_size, std::chrono::seconds(60));
    return run_ranks(world_size, [&](Communicator& comm) {
      ThreadPool pool(num_threads);
      ZeroComms comms(comm);
      const std::unique_ptr<Communicator> group = std::move(groups[static_cast<std::size_t>(comm.rank())]);
      if (options.expert_parallel_size > 1) comms.expert = group.get();
      ZeroOptimizer zero({Device{}, &pool, isa}, comms, specs, options);
      body(zero, comm);
    });
  }

  /// The job's digest after each of `num_steps` steps from scratch.
  std::vector<std::string> digests(int world_size, int num_steps) const {
    return digests(world_size, num_steps, [this](ZeroOptimizer& zero, int step) { run_step(zero, step); });
  }
  std::vector<std::string> digests(int world_size, int num_steps,
                                   const std::function<void(ZeroOptimizer&, int step)>& run) const {
    std::vector<Digest128> sums(static_cast<std::size_t>(num_steps));
    std::mutex mutex;
    on_ranks(world_size, [&](ZeroOptimizer& zero, Communicator&) {
      zero.initialize(5);
      for (int step = 0; step < num_steps; ++step) {
        run(zero, step);
        const std::lock_guard lock(mutex);
        sums[static_cast<std::size_t>(step)] += zero.digest_part();
      }
    });
    std::vector<std::string> texts;
    for (const Digest128& sum : sums) texts.push_back(sum.to_hex());
    return texts;
  }
};

}  // namespace zerofleet::test
