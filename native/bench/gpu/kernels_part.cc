#include <algorithm>
#include <cmath>
#include <string_view>

#include "bench/device_machine.h"
#include "bench/gpu/json_line.h"
#include "bench/gpu/parts.h"
#include "bench/kernel_bench.h"
#include "core/device/transfer.h"
#include "core/error.h"

namespace zerofleet::bench {
namespace {

/// Operands of one case that stay in a cache would flatter it: several sets of them take turns until together they are
/// larger than any.
constexpr double kBeyondCaches = 512e6;
constexpr int kMostSets = 16;

bool begins(std::string_view op, std::string_view with) { return op.starts_with(with); }

/// Returns true if a step of the model has the operation. (A device that reads operands in place does not pack.)
bool has(const ModelConfig& model, std::string_view op) {
  if (begins(op, "layernorm") || begins(op, "bias_")) return model.norm == NormType::kLayer;
  if (begins(op, "rmsnorm")) return model.norm == NormType::kRms;
  if (begins(op, "swiglu")) return model.gated_mlp();
  if (begins(op, "gelu_tanh") || op.find("_gelu.") != op.npos) return model.mlp == MlpType::kGeluTanh;
  if (begins(op, "gelu.")) return model.mlp == MlpType::kGelu;
  if (begins(op, "rope")) return model.positions == PositionType::kRope;
  if (begins(op, "head_norm")) return model.qk_norm;
  if (begins(op, "moe_")) return model.num_experts > 0;
  const bool is_quantized = op.find("nf4") != op.npos || op.find("int8") != op.npos || op.find("_in_place.") != op.npos;
  return !is_quantized && !begins(op, "dropout");
}

bool is_wanted(const GpuBenchOptions& options, const TrainingShape& training, std::string_view op) {
  if (!options.ops.empty()) return std::ranges::find(options.ops, op) != options.ops.end();
  return !begins(op, "pack_") && (has(training.model, op) || training.measures_all_kernels);
}

struct Measured {
  KernelCase made;
  std::vector<double> seconds;
  double mean_magnitude = 0;
  std::size_t sets = 0;
};

Measured measure(const GpuBenchOptions& options, const TrainingShape& training, const KernelEntry& entry) {
  DeviceMachine machine(options.device);
  KernelBench bench(machine.ctx, training.model, training.micro_batch, DType::kBF16);
  Measured measured{entry.make(bench), {}};
  std::vector<std::function<void()>> runs{measured.made.run};
  const double sets = options.tiny ? 2 : std::ceil(kBeyondCaches / std::max(measured.made.bytes, 1.0));
  while (static_cast<double>(runs.size()) < std::min(sets, double{kMostSets})) runs.push_back(entry.make(bench).run);
  measured.sets = runs.size();
  measured.seconds = seconds_of_runs(machine.ctx, runs, options.patience);
  measured.mean_magnitude = mean_magnitude(machine.ctx, measured.made.results);
  return measured;
}

bool report(const TrainingShape& training, const char* op, const Measured& measured, const Floors& floors) {
  const double compute = measured.made.operations / floors.matrix_operations_per_second;
  const double memory = measured.made.bytes / floors.copy_bytes_per_second;
  const double seconds = median(measured.seconds), floor = std::max(compute, memory);
  const bool finite = std::isfinite(measured.mean_magnitude);
  JsonLine("kernel")
      .add("config", training.name)
      .add("op", op)
      .add("shape", measured.made.shape)
      .add("bytes", measured.made.bytes)
      .add("operations", measured.made.operations)
      .add("microseconds", seconds * 1e6)
      .add("floor_microseconds", floor * 1e6)
      .add("share_of_floor", floor / seconds)
      .add("bound", compute > memory ? "compute" : "memory")
      .add("operand_sets", measured.sets)
      .add("mean_magnitude", measured.mean_magnitude)
      .add("finite", finite)
      .print();
  return finite;
}

/// Calls body(training, entry) for each case that is wanted.
template <class Body>
void for_cases(const GpuBenchOptions& options, const Body& body) {
  for (const TrainingShape& training : options.trainings) {
    for (const KernelEntry& entry : all_kernels()) {
      if (is_wanted(options, training, entry.op)) body(training, entry);
    }
  }
}

}  // namespace

void print_cases(const GpuBenchOptions& options) {
  DeviceMachine machine(options.device);
  for (const TrainingShape& training : options.trainings) training_line("training", training).print();
  for_cases(options, [&](const TrainingShape& training, const KernelEntry& entry) {
    KernelBench bench(machine.ctx, training.model, training.micro_batch, DType::kBF16, Operands::kSizesOnly);
    const KernelCase made = entry.make(bench);
    JsonLine("case")
        .add("config", training.name)
        .add("op", entry.op)
        .add("shape", made.shape)
        .add("bytes", made.bytes)
        .add("operations", made.operations)
        .print();
  });
}

bool run_kernels(const GpuBenchOptions& options, const Floors& floors) {
  bool all_well = true;
  for_cases(options, [&](const TrainingShape& training, const KernelEntry& entry) {
    try {
      all_well &= report(training, entry.op, measure(options, training, entry), floors);
    } catch (const Error& error) {
      JsonLine("kernel")
          .add("config", training.name)
          .add("op", entry.op)
          .add("problem", error.code())
          .add("message", error.what())
          .print();
      all_well = false;
    }
  });
  return all_well;
}

}  // namespace zerofleet::bench
