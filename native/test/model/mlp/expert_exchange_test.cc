// Experts on other ranks: the results equal those of one rank that has all experts, for the leaves that are run
// together.
#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/kernels/host_matrix.h"
#include "test/kernels/test_machine.h"
#include "test/model/expert_sets.h"
#include "test/model/family_configs.h"
#include "test/model/golden_model.h"
#include "test/model/random_model.h"

using namespace zerofleet;
using namespace zerofleet::test;
using namespace std::chrono_literals;

namespace {

ModelConfig mixtral_with(std::int64_t num_experts, std::int64_t experts_per_token) {
  ModelConfig config = config_of("mixtral");
  config.num_experts = num_experts;
  config.experts_per_token = experts_per_token;
  return config;
}

/// Leaves are different where `leaf` is.
void choose_tokens(RandomModel& model, int leaf) {
  for (std::size_t i = 0; i < model.tokens.size(); ++i) {
    model.tokens[i] = static_cast<std::int32_t>(
        (static_cast<std::size_t>(model.tokens[i]) + 7U * static_cast<std::size_t>(leaf)) % 90U);
  }
}

struct Job {
  ModelConfig config;
  DType dtype = DType::kF32;
  PassShape shape = {2, 19};
  bool same_leaves = false;
  bool checkpointing = false;
  int num_threads = 1;
  Device device = {};

  /// Returns the gradients that each of P ranks computes for its leaf; with P = 1 the leaves one after the other.
  std::vector<RandomModel::Gradients> run(int num_sets, int num_leaves) const {
    std::vector<RandomModel::Gradients> of_leaves(static_cast<std::size_t>(num_leaves));
    const auto run_leaf = [&](int leaf, ExpertExchange* experts, const Context& ctx) {
      const WeightUse use = checkpointing ? WeightUse::kInPlace : WeightUse::kPackedCopies;
      RandomModel model(ctx, config, dtype, {checkpointing, use, experts}, shape);
      if (!same_leaves) choose_tokens(model, leaf);
      of_leaves[static_cast<std::size_t>(leaf)] = model.gradients({7, 3, static_cast<std::uint64_t>(leaf)});
    };
    if (num_sets == 1) {
      DeviceMachine machine(device, best_cpu_isa(), num_threads);
      for (int leaf = 0; leaf < num_leaves; ++leaf) run_leaf(leaf, nullptr, machine.ctx);
    } else {
      const SetBody body = [&](ExpertExchange& ranks, const Context& ctx) { run_leaf(ranks.set(), &ranks, ctx); };
      CHECK(on_sets(num_sets, body, device, num_threads) == all_well(num_sets));
    }
    return of_leaves;
  }
};

std::vector<float> sum_over(const std::vector<RandomModel::Gradients>& leaves, std::size_t param) {
  std::vector<float> sum(leaves.front().gradients[param].size());
  for (const auto& leaf : leaves) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += leaf.gradients[param][i];
  }
  return sum;
}

/// An expert's gradient is on the rank that holds it, for all leaves; the others' are those of the own leaf.
void check_gradients(const Job& job, int num_sets, double tolerance) {
  const auto apart = job.run(num_sets, num_sets), alone = job.run(1, num_sets);
  const auto specs = param_specs(job.config);
  for (std::size_t rank = 0; rank < apart.size(); ++rank) {
    CAPTURE(rank);
    CHECK(apart[rank].result.loss_sum == doctest::Approx(alone[rank].result.loss_sum).epsilon(tolerance));
    CHECK(apart[rank].result.aux_loss == doctest::Approx(alone[rank].result.aux_loss).epsilon(tolerance));
    for (std::size_t param = 0; param < specs.size(); ++param) {
      CAPTURE(specs[param].name);
      const std::int64_t per_set = job.config.num_experts / num_sets;
      if (specs[param].expert < 0) {
        CHECK(relative_error(apart[rank].gradients[param], alone[rank].gradients[param]) < tolerance);
      } else if (specs[param].expert / per_set == static_cast<int>(rank)) {
        CHECK(relative_error(apart[rank].gradients[param], sum_over(alone, param)) < tolerance);
      } else {
        CHECK(apart[rank].gradients[param].empty());
      }
    }
  }
}

}  // namespace

DEVICE_TEST_CASE(
    "experts on five ranks, each with a copy of one leaf: loss and gradients match transformers within 1e-5") {
  const GoldenFile golden("mixtral");
  constexpr int kSets = 5;
  const SetBody body = [&](ExpertExchange& ranks, const Context& ctx) {
    GoldenModel model(golden, ctx, DType::kF32, {.experts = &ranks});
    GoldenPass pass = model.run();
    CHECK(pass.loss.loss_sum == doctest::Approx(golden.number("loss_sum")).epsilon(1e-6));
    CHECK(pass.loss.aux_loss == doctest::Approx(golden.number("aux_loss")).epsilon(1e-6));
    for (std::size_t param = 0; param < model.specs().size(); ++param) {
      const ParamSpec& spec = model.specs()[param];
      CAPTURE(spec.name);
      const bool is_expert = spec.expert >= 0, is_here = !is_expert || spec.expert == ranks.set();
      CHECK(pass.times_emitted[param] == (is_here ? 1 : 0));
      if (!is_here) continue;
      for (float& value : pass.grads[param]) value /= is_expert ? static_cast<float>(kSets) : 1.0F;
      CHECK(relative_error(pass.grads[param], golden.floats("grad." + spec.name)) < 1e-5);
    }
  };
  for (const Device device : devices_here()) CHECK(on_sets(kSets, body, device) == all_well(kSets));
}

TEST_CASE(
    "experts on other ranks: gradients are those of one rank with all experts, summed over the leaves of a round") {
  check_gradients({mixtral_with(4, 2)}, 2, 1e-5);
  check_gradients({mixtral_with(4, 2)}, 4, 1e-5);
  check_gradients({mixtral_with(6, 3)}, 3, 1e-5);
  Job few{mixtral_with(4, 1), DType::kF32, {1, 1}};  // one row per leaf, all for one expert: three ranks have none
  few.same_leaves = true;
  check_gradients(few, 4, 1e-5);
  Job wide{mixtral_with(4, 2)};  // rows of 2 KiB, which tensors pad
  wide.config.hidden_size = 512;
  check_gradients(wide, 2, 1e-5);
}

DEVICE_TEST_CASE(
    "experts on other ranks: CUDA devices give the gradients of one with all experts, and the same bits again") {
  for (const Device device : cuda_devices_here()) {
    Job job{mixtral_with(4, 2)};
    job.device = device;
    job.shape = {1, 19};
    check_gradients(job, 2, 1e-5);
    Job few{mixtral_with(4, 1), DType::kF32, {1, 1}};  // three ranks have no row
    few.same_leaves = true;
    few.device = device;
    check_gradients(few, 4, 1e-5);
    job.dtype = DType::kBF16;
    const auto expected = job.run(2, 2);
    job.checkpointing = true;
    CHECK(job.run(2, 2) == expected);
  }
}

TEST_CASE("experts on other ranks: equal bits with 1 and 2 threads, with and without activation checkpointing") {
  for (const DType dtype : kAllDTypes) {
    Job job{mixtral_with(4, 2), dtype};
    const auto expected = job.run(2, 2);
    CHECK(expected[0].result.loss_sum != expected[1].result.loss_sum);
    job.num_threads = 2;
    CHECK(job.run(2, 2) == expected);
    job.checkpointing = true;
    CHECK(job.run(2, 2) == expected);
  }
}

TEST_CASE("experts on other ranks: packed weights are those of the own set") {
  const ModelConfig config = mixtral_with(4, 2);
  const auto packed_bytes = [&](int num_sets) {
    std::size_t num_bytes = 0;
    const auto pack = [&](ExpertExchange* experts, const Context& ctx) {
      RandomModel model(ctx, config, DType::kBF16, {.experts = experts});
      if (experts == nullptr || experts->set() == 0) num_bytes = model.model().packed_bytes();
    };
    if (num_sets == 1) {
      Machine machine(best_cpu_isa(), 1);
      pack(nullptr, machine.ctx);
    } else {
      const SetBody body = [&](ExpertExchange& ranks, const Context& ctx) { pack(&ranks, ctx); };
      CHECK(on_sets(num_sets, body) == all_well(num_sets));
    }
    return num_bytes;
  };
  const std::size_t all = packed_bytes(1), half = packed_bytes(2), quarter = packed_bytes(4);
  CHECK(half < all);
  CHECK((all - half) * 3 == (all - quarter) * 2);
}

TEST_CASE("experts on other ranks: a rank that leaves or stays silent on the way is a typed error on the other") {
  struct StopsAt final : ExpertExchange {
    StopsAt(ExpertExchange& ranks, int number, std::function<void()> action)
        : inner(ranks), left(number), stop(std::move(action)) {}
    int num_sets() const override { return inner.num_sets(); }
    int set() const override { return inner.set(); }
    void all_to_all(std::span<const std::byte> send, std::span<const Range> send_bytes, std::span<std::byte> recv,
                    std::span<const Range> recv_bytes) override {
      if (left-- == 0) stop();
      inner.all_to_all(send, send_bytes, recv, recv_bytes);
    }
    ExpertExchange& inner;
    int left;
    std::function<void()> stop;
  };
  const auto codes = [](RunWorld run, std::chrono::milliseconds timeout, int number,
                        const std::function<void()>& stop) {
    return run(
        2,
        [&](Communicator& comm) {
          Machine machine(best_cpu_isa(), 1);
          ExpertRowsComm ranks(comm, machine.ctx);
          StopsAt stopping(ranks, number, stop);
          ExpertExchange& mine = comm.rank() == 1 ? static_cast<ExpertExchange&>(stopping) : ranks;
          RandomModel(machine.ctx, mixtral_with(4, 2), DType::kF32, {.experts = &mine}).gradients();
        },
        timeout);
  };
  for (const RunWorld run : built_in({run_thread_world, run_gloo_world})) {
    for (const int number : {0, 1, 2, 7}) {  // counts, rows there, rows back, backward
      CAPTURE(number);
      const auto left = codes(run, 30s, number, [] { throw Error("test", "the rank leaves"); });
      CHECK(left == std::vector<std::string>{"comm_failed", "test"});
    }
  }
  // Over Gloo, a rank that lives counts as slow.
  const auto silent = codes(run_thread_world, 1s, 4, [] {
    std::this_thread::sleep_for(2500ms);
    throw Error("test", "the rank has slept");
  });
  CHECK(silent == std::vector<std::string>{"comm_timeout", "test"});
}
