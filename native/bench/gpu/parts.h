#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/gpu/configs.h"
#include "bench/gpu/json_line.h"
#include "bench/gpu/rounds.h"
#include "core/device.h"
#include "core/dtype.h"

// The parts of zerofleet_gpu_bench. Each prints JSON lines, and returns whether all that it checks holds.
namespace zerofleet::bench {

struct GpuBenchOptions {
  Device device{DeviceKind::kCuda, 0};
  bool tiny = false;  // sizes for a test of the program itself
  Patience patience;
  std::vector<TrainingShape> trainings;
  std::vector<std::string> ops;  // of the kernels; empty: those of each model, and in one of them all others
};

/// Measured upper bounds of this device.
struct Floors {
  double copy_bytes_per_second = 0;         // of a copy within its memory, read and written bytes together
  double matrix_operations_per_second = 0;  // of a large product of random values in bf16
};

/// "copy" and "matmul" lines.
Floors measure_floors(const GpuBenchOptions& options);
/// The sizes of a training, for a line about it.
JsonLine training_line(std::string_view part, const TrainingShape& training);
/// A "training" line for each training and a "case" line for each operation that run_kernels() would measure: what it
/// moves and computes. Nothing is run.
void print_cases(const GpuBenchOptions& options);
/// A "kernel" line for each operation in the shapes of each training; false where a result is not finite.
bool run_kernels(const GpuBenchOptions& options, const Floors& floors);
/// A "train" line for each training; false where one cannot train.
bool run_trainings(const GpuBenchOptions& options, const Floors& floors);
/// "digests", "resumed" and "loss_curve" lines; false where digests differ, or the loss leaves the CPU's.
bool run_exactness(const GpuBenchOptions& options);

}  // namespace zerofleet::bench
