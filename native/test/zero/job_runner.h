#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/system/cpu_isa.h"
#include "test/zero/random_job.h"
#include "zero/step/zero_optimizer.h"

namespace zerofleet::test {

inline constexpr std::int64_t kNumSteps = 10;

/// Results of a job: the digest of its state after each step, and each step's summary.
struct Trace {
  std::vector<std::string> digests;
  std::vector<PlainSummary> summaries;
  std::vector<std::byte> params;  // in compute dtype, one after the other, at the end
};

/// Describes the first difference of two traces; "" if there is none.
std::string difference(const Trace& a, const Trace& b);

/// Runs the job as plain training.
Trace plain_trace(const RandomJob& job);

/// Runs a job's steps with ZeroOptimizer on any number of ranks, which are threads. Runs them all in one go, or in
/// several on other numbers of ranks that go on from the saved state of those before. What must not change the result
/// besides (threads, instruction sets, the order in which gradients come) is drawn at random.
class JobRunner {
 public:
  explicit JobRunner(const RandomJob& job) : job_(job), draws_(job.seed + 1), sums_(kNumSteps) {}

  /// Steps begin … end - 1.
  void run(int world_size, std::int64_t begin, std::int64_t end);
  Trace trace() const;

 private:
  struct Setting {
    int num_threads = 1;
    CpuIsa isa = CpuIsa::kGeneric;
    std::size_t first_param = 0;  // its gradient comes first; the others follow backwards, around the circle
    bool rounds_itself = false;   // gradients come in the type of the exchange, in its room if there is some
  };
  /// All that a checkpoint keeps: the elements of every state of every parameter, and the progress.
  struct Saved {
    std::map<std::pair<StateId, std::size_t>, std::vector<float>> states;
    ZeroProgress progress;
  };

  Setting drawn_setting();
  PlainSummary run_step(const Setting& setting, ZeroOptimizer& zero, std::int64_t step) const;
  void add_rounded(ZeroOptimizer& zero, std::size_t param, std::span<const float> grad) const;
  void add_grads(const Setting& setting, ZeroOptimizer& zero, std::int64_t step, std::int64_t leaf) const;
  std::span<float> values_of(Saved& saved, const StateRange& range) const;
  void load(ZeroOptimizer& zero, Saved& saved);
  void add_step(std::int64_t step, const Digest128& part, const PlainSummary& summary, bool reports);
  void finish(ZeroOptimizer& zero);
  void collect_params(const ZeroOptimizer& zero);

  const RandomJob& job_;
  Draws draws_;
  std::mutex mutex_;  // of all below, which ranks write
  std::vector<Digest128> sums_;
  std::vector<PlainSummary> summaries_;
  std::vector<std::byte> params_;
  Saved saved_;
};

}  // namespace zerofleet::test
