#include "train/memory_probe.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "comm/thread_comm.h"
#include "core/error.h"
#include "zero/step/zero_optimizer.h"

namespace zerofleet {
namespace {

std::vector<ParamSpec> specs_of(const MemoryProbe& probe) {
  std::vector<ParamSpec> specs;
  for (std::int64_t begin = 0; begin < probe.num_params; begin += probe.param_numel) {
    ParamSpec spec;
    spec.name = "param." + std::to_string(specs.size());
    spec.shape = {std::min(probe.param_numel, probe.num_params - begin)};
    specs.push_back(spec);
  }
  return specs;
}

ZeroMemory run_rank(const MemoryProbe& probe, const std::vector<ParamSpec>& specs, Communicator& communicator) {
  ThreadPool pool(1);
  ZeroOptimizer zero({Device{}, &pool, best_cpu_isa()}, communicator, specs, probe.options);
  zero.initialize(1);
  const std::vector<float> grad(static_cast<std::size_t>(probe.param_numel), 1e-3F);
  for (int step = 0; step < probe.num_steps; ++step) {
    for (const std::int64_t leaf : zero.leaves()) {
      zero.begin_leaf(leaf);
      for (std::size_t param = specs.size(); param-- > 0;) {
        zero.add_grad(param, std::span(grad).first(static_cast<std::size_t>(specs[param].numel())));
      }
      zero.end_leaf(1.0, 1);
    }
    zero.step({1e-3, 0});
  }
  return zero.memory();
}

}  // namespace

ZeroMemory run_memory_probe(const MemoryProbe& probe) {
  require(probe.num_params >= 1 && probe.param_numel >= 1 && probe.world_size >= 1 && probe.num_steps >= 1,
          "invalid_argument", "parameters, their size, ranks and steps must be at least 1");
  MemoryProbe filled = probe;
  filled.options.num_leaves = std::max<std::int64_t>(probe.world_size, probe.options.num_lanes);
  const std::vector<ParamSpec> specs = specs_of(filled);
  auto comms = make_thread_comms(probe.world_size, std::chrono::minutes(5));
  std::vector<ZeroMemory> memory(comms.size());
  std::vector<std::exception_ptr> failures(comms.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < comms.size(); ++rank) {
    threads.emplace_back([&, rank, communicator = std::move(comms[rank])]() mutable {
      try {
        memory[rank] = run_rank(filled, specs, *communicator);
      } catch (...) {
        failures[rank] = std::current_exception();
      }
      communicator.reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return memory.front();
}

}  // namespace zerofleet
