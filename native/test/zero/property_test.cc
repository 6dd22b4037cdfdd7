// Random jobs on random numbers of ranks, against one another and against plain training on one machine.
#include <doctest/doctest.h>

#include <cmath>
#include <mutex>
#include <string>
#include <vector>

#include "test/zero/fake_job.h"
#include "test/zero/random_job.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr int kNumSteps = 10;

/// What a job computed: the digest of its state after each step, and what each step said.
struct Trace {
  std::vector<std::string> digests;
  std::vector<PlainSummary> summaries;
  std::vector<std::byte> params;  // at the end
};

bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// A norm that is not finite may be infinite or no number, whichever.
bool same(const PlainSummary& a, const PlainSummary& b) {
  const bool same_norm = a.grad_norm == b.grad_norm || (!std::isfinite(a.grad_norm) && !std::isfinite(b.grad_norm));
  return same_norm && same_number(a.loss, b.loss) && a.loss_scale == b.loss_scale && a.finite == b.finite &&
         a.num_targets == b.num_targets;
}

/// Where two traces part: "" for nowhere.
std::string difference(const Trace& a, const Trace& b) {
  for (std::size_t step = 0; step < kNumSteps; ++step) {
    if (!same(a.summaries[step], b.summaries[step])) return "summary of step " + std::to_string(step);
    if (a.digests[step] != b.digests[step]) return "digest after step " + std::to_string(step);
  }
  return a.params == b.params ? "" : "parameters";
}

Trace plain_trace(const RandomJob& job) {
  Trace trace;
  PlainTraining training = job.plain();
  for (int step = 0; step < kNumSteps; ++step) {
    trace.summaries.push_back(training.step(step));
    trace.digests.push_back(training.digest());
  }
  trace.params = training.param_bytes();
  return trace;
}

ZeroOptions zero_options(const RandomJob& job) {
  const PlainOptions& o = job.options;
  ZeroOptions options;
  options.param_dtype = o.param_dtype;
  options.reduce_dtype = o.reduce_dtype;
  options.bucket_bytes = job.bucket_bytes;
  options.optimizer = o.optimizer;
  options.gradient_clipping = static_cast<float>(o.clipping);
  options.num_leaves = o.num_leaves;
  options.num_lanes = o.num_lanes;
  options.grad_unit = o.grad_unit;
  return options;
}

std::vector<ParamSpec> specs_of(const RandomJob& job) {
  std::vector<ParamSpec> specs;
  for (const PlainParam& param : job.params) {
    specs.push_back(param.spec);
    specs.back().group = param.weight_decay > 0 ? ParamGroup::kDecay : ParamGroup::kNoDecay;
  }
  return specs;
}

PlainSummary run_step(const RandomJob& job, ZeroOptimizer& zero, std::int64_t step) {
  for (const std::int64_t leaf : zero.leaves()) {
    zero.begin_leaf(leaf);
    for (std::size_t i = job.params.size(); i > 0; --i) zero.add_grad(i - 1, job.grad(step, leaf, i - 1));
    zero.end_leaf(job.loss_sum(step, leaf), RandomJob::kTargetsPerLeaf);
  }
  const StepSummary summary = zero.step({job.options.lr, 0});
  return {summary.loss, summary.grad_norm, 1, summary.finite, summary.num_targets};
}

Trace zero_trace(const RandomJob& job, int world_size) {
  Trace trace;
  std::vector<Digest128> sums(kNumSteps);
  std::mutex mutex;
  rethrow_first(run_ranks(world_size, [&](Communicator& comm) {
    ThreadPool pool(1 + comm.rank() % 2);
    ZeroOptimizer zero({Device{}, &pool, best_cpu_isa()}, comm, specs_of(job), zero_options(job));
    zero.initialize(job.seed);
    for (int step = 0; step < kNumSteps; ++step) {
      const PlainSummary summary = run_step(job, zero, step);
      const Digest128 part = zero.digest_part();
      const std::lock_guard lock(mutex);
      sums[static_cast<std::size_t>(step)] += part;
      if (comm.rank() == 0) trace.summaries.push_back(summary);
    }
    if (comm.rank() != 0) return;
    for (std::size_t param = 0; param < job.params.size(); ++param) {
      const auto num_bytes =
          static_cast<std::size_t>(job.params[param].spec.numel()) * size_of(job.options.param_dtype);
      trace.params.insert(trace.params.end(), zero.params()[param], zero.params()[param] + num_bytes);
    }
  }));
  for (const Digest128& sum : sums) trace.digests.push_back(sum.to_hex());
  return trace;
}

/// Every combination of what a job can be asked for.
std::vector<JobKind> all_kinds() {
  constexpr DType kDTypes[] = {DType::kF32, DType::kBF16, DType::kF16};
  std::vector<JobKind> kinds;
  for (const auto optimizer : {OptimizerType::kAdamW}) {
    for (const DType params : kDTypes) {
      for (const DType reduce : {DType::kF32, DType::kBF16}) {
        for (const DType accum : {DType::kF32}) {
          for (const int stage : {1, 2}) {
            for (const auto clipping : {JobKind::Clipping::kOff, JobKind::Clipping::kL2}) {
              kinds.push_back({optimizer, params, reduce, accum, stage, clipping});
            }
          }
        }
      }
    }
  }
  return kinds;
}

}  // namespace

TEST_CASE("property: a job has the same digests on any two numbers of ranks, those of plain training") {
  std::uint64_t seed = 1000;
  for (const JobKind& kind : all_kinds()) {
    const RandomJob job = random_job(kind, seed++);
    CAPTURE(job.text());
    const Trace expected = plain_trace(job);
    Draws draws(job.seed + 1);
    const auto count = static_cast<std::int64_t>(job.world_sizes.size());
    const std::int64_t first = draws.below(count), second = (first + 1 + draws.below(count)) % count;
    for (const std::int64_t which : {first, second}) {
      const int world_size = job.world_sizes[static_cast<std::size_t>(which)];
      CAPTURE(world_size);
      CHECK(difference(zero_trace(job, world_size), expected) == "");
    }
  }
}

TEST_CASE("property: one rank with all features off is plain training, bit for bit") {
  std::uint64_t seed = 9000;
  for (const JobKind& kind : all_kinds()) {
    const RandomJob job = plain_job(kind, seed++);
    CAPTURE(job.text());
    CHECK(difference(zero_trace(job, 1), plain_trace(job)) == "");
  }
}
