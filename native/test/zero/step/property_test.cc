// Random jobs on random numbers of ranks, against one another and against plain training on one machine.
#include <doctest/doctest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "test/sanitized.h"
#include "test/zero/job_runner.h"
#include "test/zero/optimizer_types.h"
#include "test/zero/random_job.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr std::size_t kStride = kSanitized ? 23 : 1;  // one of this many combinations

Trace zero_trace(const RandomJob& job, int world_size) {
  JobRunner runner(job);
  runner.run(world_size, 0, kNumSteps);
  return runner.trace();
}

/// Every combination of a job's options; with `stride`, one of so many. A prime meets all values.
std::vector<JobKind> all_kinds(std::size_t stride = 1) {
  constexpr DType kDTypes[] = {DType::kF32, DType::kBF16, DType::kF16};
  constexpr JobKind::Clipping kClippings[] = {JobKind::Clipping::kOff, JobKind::Clipping::kL2, JobKind::Clipping::kMax};
  std::vector<JobKind> kinds;
  for (std::size_t i = 0; i < kOptimizerTypes.size() * 27 * 2 * 3; i += stride * kStride) {
    std::size_t rest = i;
    const auto next = [&rest](std::size_t count) { return std::exchange(rest, rest / count) % count; };
    JobKind& kind = kinds.emplace_back();
    kind.clipping = kClippings[next(3)];
    kind.stage = static_cast<int>(1 + next(2));
    kind.grad_accum_dtype = kDTypes[next(3)];
    kind.reduce_dtype = kDTypes[next(3)];
    kind.param_dtype = kDTypes[next(3)];
    kind.optimizer = kOptimizerTypes[next(kOptimizerTypes.size())];
  }
  return kinds;
}

/// Up to `count` different numbers of ranks that the job allows.
std::vector<int> some_world_sizes(const RandomJob& job, std::size_t count) {
  std::vector<int> sizes = job.world_sizes;
  Draws draws(job.seed + 2);
  for (std::size_t i = sizes.size(); i > 1; --i) {
    std::swap(sizes[i - 1], sizes[static_cast<std::size_t>(draws.below(static_cast<std::int64_t>(i)))]);
  }
  sizes.resize(std::min(sizes.size(), count));
  return sizes;
}

}  // namespace

TEST_CASE("property: a job has the same digests on any two numbers of ranks, those of plain training") {
  std::uint64_t seed = 1000;
  for (const JobKind& kind : all_kinds()) {
    const RandomJob job = random_job(kind, seed++);
    CAPTURE(job.text());
    const Trace expected = plain_trace(job);
    for (const int world_size : some_world_sizes(job, 2)) {
      CAPTURE(world_size);
      CHECK(difference(zero_trace(job, world_size), expected) == "");
    }
  }
}

TEST_CASE(
    "property: a job that goes on from its saved state on other numbers of ranks ends as if it had never stopped") {
  std::uint64_t seed = 5000;
  for (const JobKind& kind : all_kinds(5)) {
    const RandomJob job = random_job(kind, seed++);
    CAPTURE(job.text());
    JobRunner runner(job);
    const auto sizes = some_world_sizes(job, 3);
    runner.run(sizes[0], 0, 3);
    runner.run(sizes[1 % sizes.size()], 3, 4);
    runner.run(sizes[2 % sizes.size()], 4, kNumSteps);
    CHECK(difference(runner.trace(), plain_trace(job)) == "");
  }
}

TEST_CASE("property: one rank with all features off is plain training, bit for bit") {
  std::uint64_t seed = 9000;
  for (const JobKind& kind : all_kinds(5)) {
    if (kind.stage == 1) continue;  // with one leaf per lane it is stage 2
    const RandomJob job = plain_job(kind, seed++);
    CAPTURE(job.text());
    CHECK(difference(zero_trace(job, 1), plain_trace(job)) == "");
  }
}
