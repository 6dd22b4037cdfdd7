#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "bench/gpu/json_line.h"
#include "bench/gpu/parts.h"
#include "bench/gpu/token_source.h"
#include "comm/solo_comm.h"
#include "core/cuda/cuda_runtime.h"
#include "core/error.h"
#include "train/trainer.h"

namespace zerofleet::bench {
namespace {

/// Bytes of the device's pool that are in use; 0 for a CPU.
std::size_t used_bytes(const Device& device) {
  return device.kind == DeviceKind::kCpu ? 0 : cuda::memory_of(device).in_use;
}

/// The most that is taken while `body` runs, looked at every millisecond.
template <class Body>
std::size_t peak_bytes_during(const Device& device, Body&& body) {
  std::atomic<bool> done{false};
  std::size_t peak = used_bytes(device);
  std::jthread watcher([&] {
    while (!done) {
      peak = std::max(peak, used_bytes(device));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  try {
    body();
  } catch (...) {
    done = true;
    throw;
  }
  done = true;
  watcher.join();
  return peak;
}

TrainerConfig config_of(const TrainingShape& training, const Device& device, const std::string& token_file) {
  TrainerConfig config;
  config.model = training.model;
  config.device = device;
  config.num_threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 16U));
  config.cpu_isa = best_cpu_isa();
  config.batch = {training.leaves * training.micro_batch.batch, training.micro_batch.batch,
                  training.micro_batch.length};
  config.training_files = {{token_file}};
  config.lr_schedule = {LrScheduleType::kConstant, 3e-4};
  return config;
}

struct TrainingResult {
  std::vector<StepResult> steps;
  std::size_t peak_bytes = 0;
  std::vector<MemoryPart> memory;
};

TrainingResult train(const TrainingShape& training, const Device& device) {
  const std::int64_t sequences = training.leaves * training.micro_batch.batch;
  const TemporaryFile tokens(learnable_tokens(training.model.vocab_size, training.micro_batch.length, 2 * sequences));
  const std::size_t before = used_bytes(device);
  Trainer trainer(config_of(training, device, tokens.path()), make_solo_comm());
  trainer.initialize();
  TrainingResult result;
  for (int step = 0; step < training.warmup_steps + training.steps; ++step) result.steps.push_back(trainer.step(0));
  // Runs in a separate step: querying the device's memory slows down its driver.
  result.peak_bytes = peak_bytes_during(device, [&] { trainer.step(0); }) - before;
  result.memory = trainer.memory();
  return result;
}

/// The median over the measured steps of one of a step's times.
double median_of(const TrainingShape& training, const std::vector<StepResult>& steps, double StepSeconds::* field) {
  std::vector<double> seconds;
  for (auto step = steps.begin() + training.warmup_steps; step != steps.end(); ++step)
    seconds.push_back(step->seconds.*field);
  return median(seconds);
}

bool report(const TrainingShape& training, const TrainingResult& result, const Floors& floors) {
  const auto seconds = [&](double StepSeconds::* field) { return median_of(training, result.steps, field); };
  const double rate = static_cast<double>(training.tokens_per_step()) / seconds(&StepSeconds::total);
  const auto share = [&](bool attention) {
    return operations_per_token(training, attention) * rate / floors.matrix_operations_per_second;
  };
  std::vector<std::string> names;
  std::vector<double> bytes, step_seconds, losses;
  for (const MemoryPart& part : result.memory) {
    names.emplace_back(part.name);
    bytes.push_back(static_cast<double>(part.num_bytes));
  }
  for (const StepResult& step : result.steps) {
    step_seconds.push_back(step.seconds.total);
    losses.push_back(step.loss);
  }
  const bool finite = std::ranges::all_of(result.steps, &StepResult::finite);
  training_line("train", training)
      .add("warmup_steps", training.warmup_steps)
      .add("tokens_per_second", rate)
      .add("matrix_peak_share", share(false))
      .add("matrix_peak_share_with_attention", share(true))
      .add("step_seconds", step_seconds)
      .add("forward_seconds", seconds(&StepSeconds::forward))
      .add("backward_seconds", seconds(&StepSeconds::backward))
      .add("exchange_seconds", seconds(&StepSeconds::exchange))
      .add("optimizer_seconds", seconds(&StepSeconds::optimizer))
      .add("gather_seconds", seconds(&StepSeconds::gather))
      .add("peak_bytes", result.peak_bytes)
      .add("memory_parts", names)
      .add("memory_bytes", bytes)
      .add("losses", losses)
      .add("finite", finite)
      .print();
  return finite;
}

/// The same tokens of a step in smaller micro-batches; false where they are as small as can be.
bool halve(TrainingShape& training) {
  if (training.micro_batch.batch % 2 != 0) return false;
  training.micro_batch.batch /= 2;
  training.leaves *= 2;
  return true;
}

bool run(TrainingShape training, const GpuBenchOptions& options, const Floors& floors) {
  for (;;) {
    try {
      return report(training, train(training, options.device), floors);
    } catch (const Error& error) {
      JsonLine("train")
          .add("config", training.name)
          .add("micro_batch", training.micro_batch.batch)
          .add("problem", error.code())
          .add("message", error.what())
          .print();
      if (error.code() != "out_of_memory" || !halve(training)) return false;
    }
  }
}

}  // namespace

JsonLine training_line(std::string_view part, const TrainingShape& training) {
  std::int64_t params = 0;
  for (const ParamSpec& spec : param_specs(training.model)) params += spec.numel();
  return JsonLine(part)
      .add("config", training.name)
      .add("family", training.model.naming == "gpt2" ? "gpt2" : "llama")
      .add("layers", training.model.num_hidden_layers)
      .add("params", params)
      .add("micro_batch", training.micro_batch.batch)
      .add("sequence_length", training.micro_batch.length)
      .add("leaves", training.leaves)
      .add("tokens_per_step", training.tokens_per_step())
      .add("operations_per_token", operations_per_token(training, true));
}

bool run_trainings(const GpuBenchOptions& options, const Floors& floors) {
  bool all_well = true;
  for (const TrainingShape& training : options.trainings) all_well &= run(training, options, floors);
  return all_well;
}

}  // namespace zerofleet::bench
