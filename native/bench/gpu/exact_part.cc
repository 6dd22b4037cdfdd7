#include <algorithm>
#include <cmath>
#include <thread>

#include "bench/gpu/json_line.h"
#include "bench/gpu/parts.h"
#include "bench/gpu/token_source.h"
#include "bench/thread_job.h"
#include "core/error.h"

namespace zerofleet::bench {
namespace {

// Largest relative difference between a step's loss and the CPU's. Both sum products in fp32, in another order.
constexpr double kMostFp32Deviation = 1e-4;
constexpr double kMostBf16Deviation = 1e-2;  // each activation is rounded to 8 bits, now and then to another side

constexpr int kDigestSteps = 3;
constexpr std::int64_t kLeaves = 5;  // 2 and 4 ranks have uneven shares of them

/// A model of the family, small enough for the CPU beside it, with heads as wide as usual.
ModelConfig exact_model(const TrainingShape& family, bool tiny) {
  ModelConfig model = family.model;
  if (tiny) return model;
  const bool grouped = model.num_key_value_heads < model.num_attention_heads;
  model.num_hidden_layers = 4;
  model.hidden_size = 512;
  model.intermediate_size = 1408;
  model.num_attention_heads = 8;
  model.num_key_value_heads = grouped ? 4 : 8;
  model.head_dim = 64;
  model.vocab_size = 8192;
  return model;
}

class ExactJob : public ThreadJob {
 public:
  ExactJob(const TrainingShape& family, Device device, DType precision, bool tiny)
      : tokens_(learnable_tokens(exact_model(family, tiny).vocab_size, length(tiny), 31)) {
    config.model = exact_model(family, tiny);
    config.device = device;
    config.cpu_isa = best_cpu_isa();
    config.precision = precision;
    config.zero.reduce_dtype = precision;
    config.zero.bucket_bytes = tiny ? 1 << 16 : 1 << 20;
    const std::int64_t micro_batch = tiny ? 1 : 2;
    config.batch = {micro_batch * kLeaves, micro_batch, length(tiny)};
    config.training_files = {{tokens_.path()}};
    config.lr_schedule = {LrScheduleType::kConstant, 3e-4};
    timeout = std::chrono::minutes(5);
  }

  std::vector<double> losses(int num_threads, int num_steps) {
    std::vector<double> losses;
    on_ranks(1, num_threads, [&](Trainer& trainer) {
      trainer.initialize();
      for (int step = 0; step < num_steps; ++step) losses.push_back(trainer.step(0).loss);
    });
    return losses;
  }

 private:
  static std::int64_t length(bool tiny) { return tiny ? 12 : 256; }

  TemporaryFile tokens_;
};

bool check_digests(const GpuBenchOptions& options, const TrainingShape& family) {
  ExactJob job(family, options.device, DType::kBF16, options.tiny);
  std::vector<std::string> expected;
  bool all_equal = true;
  for (const int world_size : {1, 2, 4, 1}) {
    const std::vector<std::string> digests = job.digests_of_run(world_size, 1, kDigestSteps);
    if (expected.empty()) expected = digests;
    const bool equal = digests == expected && digests.front() != digests.back();
    JsonLine("digests")
        .add("family", family.name)
        .add("ranks", world_size)
        .add("digests", digests)
        .add("equal", equal)
        .print();
    all_equal &= equal;
  }
  SavedState state = job.run_from(nullptr, 2, 1);
  state = job.run_from(&state, 4, 1);
  state = job.run_from(&state, 1, 1);
  const bool equal = state.digest == expected.back();
  JsonLine("resumed")
      .add("family", family.name)
      .add("ranks", std::vector<double>{2, 4, 1})
      .add("digest", state.digest)
      .add("expected", expected.back())
      .add("equal", equal)
      .print();
  return all_equal && equal;
}

bool check_losses(const GpuBenchOptions& options, const TrainingShape& family, DType precision) {
  const int steps = options.tiny ? 2 : 20;
  const auto threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 16U));
  const auto there = ExactJob(family, options.device, precision, options.tiny).losses(1, steps);
  const auto here = ExactJob(family, Device{}, precision, options.tiny).losses(threads, steps);
  double largest = 0;
  bool finite = true;
  for (std::size_t step = 0; step < here.size(); ++step) {
    largest = std::max(largest, std::abs(there[step] - here[step]) / here[step]);
    finite &= std::isfinite(there[step]);
  }
  const double allowed = precision == DType::kF32 ? kMostFp32Deviation : kMostBf16Deviation;
  const bool falls = options.tiny || there.back() < there.front();  // two steps show nothing of it
  const bool follows = finite && largest <= allowed && falls;
  JsonLine("loss_curve")
      .add("family", family.name)
      .add("precision", name_of(precision))
      .add("losses", there)
      .add("cpu_losses", here)
      .add("largest_deviation", largest)
      .add("allowed_deviation", allowed)
      .add("follows", follows)
      .print();
  return follows;
}

/// Returns the first training of each parameter naming scheme.
std::vector<TrainingShape> families(const std::vector<TrainingShape>& trainings) {
  std::vector<TrainingShape> found;
  for (const TrainingShape& training : trainings) {
    const bool known = std::ranges::any_of(
        found, [&](const TrainingShape& other) { return other.model.naming == training.model.naming; });
    if (!known) found.push_back(training);
  }
  return found;
}

}  // namespace

bool run_exactness(const GpuBenchOptions& options) {
  bool all_well = true;
  for (const TrainingShape& family : families(options.trainings)) {
    try {
      all_well &= check_digests(options, family);
      for (const DType precision : {DType::kF32, DType::kBF16}) all_well &= check_losses(options, family, precision);
    } catch (const Error& error) {
      JsonLine("digests").add("family", family.name).add("problem", error.code()).add("message", error.what()).print();
      all_well = false;
    }
  }
  return all_well;
}

}  // namespace zerofleet::bench
