// Misuse and failures: typed errors, and never a hang.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "comm/solo_comm.h"
#include "test/zero/fake_job.h"
#include "zero/exchange/comm_queue.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

struct Solo {
  FakeJob job;
  ThreadPool pool{1};
  std::unique_ptr<Communicator> comm = make_solo_comm();
  Context context{Device{}, &pool, best_cpu_isa()};

  ZeroOptimizer make() { return ZeroOptimizer(context, *comm, job.specs, job.options); }
  std::vector<float> grad(std::size_t param) const {
    return std::vector<float>(static_cast<std::size_t>(job.specs[param].numel()), 1.0F);
  }
};

}  // namespace

TEST_CASE("leaves out of order, gradients repeated, missing or outside of a leaf are refused") {
  Solo solo;
  solo.job.options.num_leaves = 2;
  ZeroOptimizer zero = solo.make();
  zero.initialize(1);
  const auto grad = solo.grad(1);
  CHECK(code_of([&] { zero.add_grad(1, grad); }) == "leaf_out_of_order");
  CHECK(code_of([&] { zero.end_leaf(0, 1); }) == "leaf_out_of_order");
  CHECK(code_of([&] { zero.begin_leaf(1); }) == "leaf_out_of_order");
  CHECK(code_of([&] { zero.step({}); }) == "leaf_out_of_order");
  zero.begin_leaf(0);
  CHECK(code_of([&] { zero.begin_leaf(0); }) == "leaf_out_of_order");
  zero.add_grad(1, grad);
  CHECK(code_of([&] { zero.add_grad(1, grad); }) == "gradient_repeated");
  CHECK(code_of([&] { zero.end_leaf(0, 1); }) == "gradient_missing");
  // A refused call changes nothing: the leaf can go on, and the step ends well.
  for (const std::size_t param : {0U, 2U, 3U, 4U, 5U}) zero.add_grad(param, solo.grad(param));
  zero.end_leaf(1.0, 1);
  solo.job.run_leaf(zero, 0, 1);
  CHECK(zero.step({1e-3, 0}).finite);
}

TEST_CASE("options that cannot work are refused") {
  Solo solo;
  const auto code_with = [&](const std::function<void(ZeroOptions&)>& change) {
    solo.job.options = FakeJob().options;
    change(solo.job.options);
    return code_of([&] { solo.make(); });
  };
  CHECK(code_with([](ZeroOptions&) {}) == "none");
  CHECK(code_with([](ZeroOptions& o) { o.num_leaves = 0; }) == "invalid_argument");
  CHECK(code_with([](ZeroOptions& o) { o.grad_unit = 0; }) == "invalid_argument");
  CHECK(code_with([](ZeroOptions& o) { o.gradient_clipping = -1; }) == "invalid_argument");
  CHECK(code_with([](ZeroOptions& o) { o.bucket_bytes = 4096; }) == "invalid_argument");
  CHECK(code_with([](ZeroOptions& o) { o.optimizer.eps = 0; }) == "invalid_argument");
  ZeroOptimizer zero = Solo().make();
  CHECK(code_of([&] { zero.finish_load({-1, 0, zero.progress().loss_scaler}); }) == "invalid_argument");
}

TEST_CASE("more ranks than leaves are refused") {
  FakeJob job;
  job.options.num_leaves = 2;
  CHECK(code_of([&] { job.on_ranks(3, [](ZeroOptimizer&, Communicator&) {}); }) == "too_many_ranks");
}

TEST_CASE("a step without a single target is skipped") {
  Solo solo;
  solo.job.options.num_leaves = 1;
  ZeroOptimizer zero = solo.make();
  zero.initialize(1);
  const auto before = zero.digest_part();
  zero.begin_leaf(0);
  for (std::size_t param = 0; param < solo.job.specs.size(); ++param) zero.add_grad(param, solo.grad(param));
  zero.end_leaf(0.0, 0);
  CHECK(!zero.step({1e-3, 0}).finite);
  CHECK(zero.digest_part() == before);
}

TEST_CASE("losses that stay NaN end as a divergence, even with finite gradients") {
  Solo solo;
  solo.job.options.num_leaves = 1;
  solo.job.options.loss_scale.max_skipped_steps = 3;
  ZeroOptimizer zero = solo.make();
  zero.initialize(1);
  const auto step = [&] {
    zero.begin_leaf(0);
    for (std::size_t param = 0; param < solo.job.specs.size(); ++param) zero.add_grad(param, solo.grad(param));
    zero.end_leaf(NAN, 60);
    return zero.step({1e-3, 0}).finite;
  };
  CHECK(!step());
  CHECK(!step());
  CHECK(code_of([&] { step(); }) == "diverged");
}

TEST_CASE("a rank that dies in mid-step ends the others with comm_failed") {
  FakeJob job;
  const auto failures = run_ranks(3, [&](Communicator& comm) {
    ThreadPool pool(1);
    ZeroOptimizer zero({Device{}, &pool, job.isa}, comm, job.specs, job.options);
    zero.initialize(1);
    for (int step = 0; step < 3; ++step) {
      if (comm.rank() == 1 && step == 1) {
        // Half of a leaf's gradients are in progress when it is destroyed.
        zero.begin_leaf(1);
        zero.add_grad(5, std::vector<float>(4095));
        zero.add_grad(3, std::vector<float>(40970));
        throw Error("test_failure", "gone");
      }
      job.run_step(zero, step);
    }
  });
  CHECK(code_of(failures[0]) == "comm_failed");
  CHECK(code_of(failures[1]) == "test_failure");
  CHECK(code_of(failures[2]) == "comm_failed");
}

TEST_CASE("a rank that stays silent ends the others with an error in time") {
  FakeJob job;
  std::atomic<bool> done{false};
  const auto failures = run_ranks(
      2,
      [&](Communicator& comm) {
        ThreadPool pool(1);
        ZeroOptimizer zero({Device{}, &pool, job.isa}, comm, job.specs, job.options);
        zero.initialize(1);
        if (comm.rank() == 1) {
          while (!done) std::this_thread::yield();
          return;
        }
        const std::string code = code_of([&] { job.run_step(zero, 0); });
        done = true;
        CHECK(code == "comm_timeout");
      },
      std::chrono::milliseconds(200));
  rethrow_first(failures);
}

TEST_CASE("comm_queue runs tasks in order; after the first failure it drops the rest and keeps throwing") {
  ThreadPool pool(1);
  CommQueue queue({Device{}, &pool, best_cpu_isa()});
  std::vector<int> done;
  std::atomic<int> num_dropped{0};
  const auto task = [&](int id) {
    return [&done, &num_dropped, id](bool failed) {
      if (failed) {
        ++num_dropped;
      } else {
        done.push_back(id);
      }
    };
  };
  for (int id = 0; id < 5; ++id) queue.post(task(id));
  queue.drain();
  CHECK(done == std::vector<int>{0, 1, 2, 3, 4});
  queue.post([](bool) { throw Error("comm_failed", "gone"); });
  CHECK(code_of([&] { queue.drain(); }) == "comm_failed");
  CHECK(code_of([&] { queue.post(task(9)); }) == "comm_failed");
  CHECK(code_of([&] { queue.drain(); }) == "comm_failed");
  CHECK(num_dropped == 1);
  CHECK(done.size() == 5);
  queue.close();
  queue.close();
}
