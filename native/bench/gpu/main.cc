// zerofleet_gpu_bench: measures the upper bounds of a GPU, each kernel against them, and whole trainings, and checks
// that their bits do not depend on how they are run. Everything is printed as JSON lines, which tools/gpu/check.py
// collects.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>

#include "bench/gpu/json_line.h"
#include "bench/gpu/options.h"
#include "core/cuda/cuda_runtime.h"
#include "core/error.h"
#include "kernels/backends/numerics.h"

using namespace zerofleet;
using namespace zerofleet::bench;

namespace {

enum ExitCode { kAllWell = 0, kNotWell = 1, kUsageError = 2, kNoDevice = 3 };

bool has(const CommandLine& line, const char* part) { return std::ranges::find(line.parts, part) != line.parts.end(); }

bool run(const CommandLine& line) {
  const GpuBenchOptions& options = line.options;
  bool all_well = true;
  if (has(line, "cases")) print_cases(options);
  Floors floors;
  if (has(line, "floors") || has(line, "kernels") || has(line, "train")) floors = measure_floors(options);
  if (has(line, "kernels")) all_well &= run_kernels(options, floors);
  if (has(line, "train")) all_well &= run_trainings(options, floors);
  if (has(line, "exact")) all_well &= run_exactness(options);
  return all_well;
}

int run_reported(const CommandLine& line) {
  try {
    const Device& device = line.options.device;
    if (device.kind == DeviceKind::kCuda) cuda::use(device);
    JsonLine("device")
        .add("device", to_string(device))
        .add("cuda_built_in", cuda::built_in())
        .add("devices", cuda::num_devices())
        .add("numerics", numerics_fingerprint(device, best_cpu_isa()))
        .print();
    return run(line) ? kAllWell : kNotWell;
  } catch (const Error& error) {
    JsonLine("error").add("problem", error.code()).add("message", error.what()).print();
    return error.code() == "device_unavailable" ? kNoDevice : kNotWell;
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return run_reported(read_command_line({argv + 1, static_cast<std::size_t>(argc > 0 ? argc - 1 : 0)}));
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n%s", error.what(), kUsage);
    return kUsageError;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return kNotWell;
  }
}
