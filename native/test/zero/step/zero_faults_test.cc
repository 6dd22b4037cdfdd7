// Faults on one rank, as all ranks see them, on every transport that runs without special hardware.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include "core/error.h"
#include "test/comm/worlds.h"
#include "test/zero/fake_job.h"

using namespace zerofleet;
using namespace zerofleet::test;
using namespace std::chrono_literals;

namespace {

constexpr int kWorldSize = 3;
constexpr std::chrono::milliseconds kPatience = 60s;  // of exchanges that are expected to succeed

struct Transport {
  const char* name;
  RunWorld run;
};
const Transport kThreads{"threads", run_thread_world};

/// All that this build has.
std::vector<Transport> transports() {
  std::vector<Transport> all{kThreads};
  if (gloo_built_in()) all.push_back({"gloo", run_gloo_world});
  return all;
}

std::vector<std::string> all_ranks(const std::string& code) { return std::vector<std::string>(kWorldSize, code); }

/// Runs `body` on every rank with an optimizer of its own; the error codes of the ranks.
std::vector<std::string> run_job(const Transport& transport, const FakeJob& job, std::chrono::milliseconds timeout,
                                 const std::function<void(ZeroOptimizer&, Communicator&)>& body) {
  return transport.run(
      kWorldSize,
      [&](Communicator& comm) {
        ThreadPool pool(1);
        ZeroOptimizer zero({Device{}, &pool, job.isa}, ZeroComms(comm), job.specs, job.options);
        zero.initialize(5);
        body(zero, comm);
      },
      timeout);
}

/// A job whose leaf 1, which rank 1 computes, has `value` in the middle of one gradient in step `bad_step`.
FakeJob job_with_value(float value, std::int64_t bad_step) {
  FakeJob job;
  job.change = [=](std::int64_t step, std::int64_t leaf, std::size_t param, std::vector<float>& grad) {
    if (step == bad_step && leaf == 1 && param == 3) grad[grad.size() / 2] = value;
    return true;
  };
  return job;
}

/// Adds up the ranks' shares of the digest after each step.
class DigestSums {
 public:
  void add(std::size_t step, const Digest128& part) {
    const std::lock_guard lock(mutex_);
    if (sums_.size() <= step) sums_.resize(step + 1);
    sums_[step] += part;
  }
  std::string hex(std::size_t step) const { return sums_[step].to_hex(); }

 private:
  std::mutex mutex_;
  std::vector<Digest128> sums_;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("Inf or NaN in one gradient of one rank skips the step on all ranks, and the next one goes on") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const Transport& transport : transports()) {
    CAPTURE(transport.name);
    for (const float value : {kInf, -kInf, std::numeric_limits<float>::quiet_NaN()}) {
      CAPTURE(value);
      const FakeJob job = job_with_value(value, 1);
      DigestSums digests;
      const auto codes = run_job(transport, job, kPatience, [&](ZeroOptimizer& zero, Communicator&) {
        for (int step = 0; step < 3; ++step) {
          CHECK(job.run_step(zero, step).finite == (step != 1));
          digests.add(static_cast<std::size_t>(step), zero.digest_part());
        }
        CHECK(zero.skipped_steps() == 1);
        CHECK(zero.optimizer_steps() == 2);
      });
      CHECK(codes == all_ranks("none"));
      CHECK(digests.hex(1) == digests.hex(0));
      CHECK(digests.hex(2) != digests.hex(1));
      CHECK(digests.hex(2) == job.digests(1, 3).back());
    }
  }
}

TEST_CASE("a gradient that overflows on its way in fp16 skips the step and moves the loss scale on all ranks alike") {
  for (const Transport& transport : transports()) {
    CAPTURE(transport.name);
    FakeJob job = job_with_value(1e5F, 0);
    job.options.param_dtype = job.options.reduce_dtype = DType::kF16;
    job.options.loss_scale.type = LossScaleType::kDynamic;
    job.options.loss_scale.initial_scale = 1024;
    job.options.loss_scale.hysteresis = 1;
    const auto codes = run_job(transport, job, kPatience, [&](ZeroOptimizer& zero, Communicator&) {
      CHECK(!job.run_step(zero, 0).finite);
      CHECK(zero.loss_scale() == 512);
      const StepSummary next = job.run_step(zero, 1);
      CHECK(next.finite);
      CHECK(next.loss_scale == 512);
    });
    CHECK(codes == all_ranks("none"));
  }
}

TEST_CASE("diverged is thrown on all ranks alike, in the same step") {
  for (const Transport& transport : transports()) {
    CAPTURE(transport.name);
    FakeJob job;
    job.options.loss_scale.max_skipped_steps = 3;
    job.change = [](std::int64_t step, std::int64_t leaf, std::size_t param, std::vector<float>& grad) {
      if (step >= 1 && leaf == 1 && param == 0) grad[0] = std::numeric_limits<float>::infinity();
      return true;
    };
    std::vector<int> steps_done(kWorldSize);
    const auto codes = run_job(transport, job, kPatience, [&](ZeroOptimizer& zero, Communicator& comm) {
      for (int& step = steps_done[static_cast<std::size_t>(comm.rank())]; step < 10; ++step) job.run_step(zero, step);
    });
    CHECK(codes == all_ranks("diverged"));
    CHECK(steps_done == std::vector<int>(kWorldSize, 3));  // step 0 was well, 1 and 2 were skipped, 3 is one too many
  }
}

TEST_CASE("diverged names the loss scale of the step that failed, not of the one before") {
  FakeJob job;
  job.options.loss_scale = {
      .type = LossScaleType::kDynamic, .initial_scale = 8, .hysteresis = 1, .max_skipped_steps = 3};
  job.change = [](std::int64_t, std::int64_t, std::size_t, std::vector<float>& grad) {
    grad[0] = std::numeric_limits<float>::infinity();
    return true;
  };
  std::string message;
  job.on_ranks(1, [&](ZeroOptimizer& zero, Communicator&) {
    zero.initialize(5);
    try {
      for (int step = 0; step < 10; ++step) job.run_step(zero, step);
    } catch (const Error& error) {
      message = error.what();
    }
  });
  CHECK(message.ends_with("; the last one had a loss scale of 2"));  // after 8 and 4
}

TEST_CASE("a rank that dies in the middle of an exchange is comm_failed on the others, long before the timeout") {
  for (const Transport& transport : transports()) {
    CAPTURE(transport.name);
    const FakeJob job;
    const auto start = std::chrono::steady_clock::now();
    const auto codes = run_job(transport, job, kPatience, [&](ZeroOptimizer& zero, Communicator& comm) {
      job.run_step(zero, 0);
      if (comm.rank() == 1) {
        // Half of a leaf's gradients are in progress when it is destroyed.
        zero.begin_leaf(1);
        zero.add_grad(5, std::vector<float>(4095));
        zero.add_grad(3, std::vector<float>(40970));
        throw Error("test_failure", "gone");
      }
      job.run_step(zero, 1);
    });
    CHECK(codes == std::vector<std::string>{"comm_failed", "test_failure", "comm_failed"});
    CHECK(seconds_since(start) < 30);
  }
}

// Over Gloo, a rank that lives counts as slow: comm/stopped_rank_test.cc stops one.
TEST_CASE("a rank that hangs in the middle of an exchange is an error on the others within the timeout") {
  const FakeJob job;
  std::atomic<int> num_over{0};
  const auto codes = run_job(kThreads, job, 3000ms, [&](ZeroOptimizer& zero, Communicator& comm) {
    job.run_step(zero, 0);
    if (comm.rank() == 1) {
      zero.begin_leaf(1);
      zero.add_grad(5, std::vector<float>(4095));
      while (num_over < kWorldSize - 1) std::this_thread::sleep_for(1ms);
      throw Error("test_failure", "woke up");
    }
    const auto start = std::chrono::steady_clock::now();
    const std::string code = code_of([&] { job.run_step(zero, 1); });
    CHECK(seconds_since(start) < 20);
    ++num_over;
    throw Error(code, "as it came");
  });
  CHECK(codes[1] == "test_failure");
  // The first rank whose timeout ends reports it, and leaves; to the other either may come first.
  CHECK(std::ranges::count(codes, "comm_timeout") >= 1);
  CHECK(std::ranges::count(codes, "comm_timeout") + std::ranges::count(codes, "comm_failed") == 2);
}

TEST_CASE("a second arrival of a gradient is refused on the rank, which can go on") {
  for (const Transport& transport : transports()) {
    CAPTURE(transport.name);
    FakeJob job;
    const auto codes = run_job(transport, job, kPatience, [&](ZeroOptimizer& zero, Communicator& comm) {
      FakeJob mine = job;
      mine.change = [&](std::int64_t step, std::int64_t leaf, std::size_t param, std::vector<float>& grad) {
        if (step != 1 || leaf != comm.rank()) return true;
        zero.add_grad(param, grad);
        CHECK(code_of([&] { zero.add_grad(param, grad); }) == "gradient_repeated");
        return false;
      };
      for (int step = 0; step < 3; ++step) CHECK(mine.run_step(zero, step).finite);
    });
    CHECK(codes == all_ranks("none"));
  }
}
