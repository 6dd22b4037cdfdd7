#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/gpu/parts.h"

namespace zerofleet::bench {

struct CommandLine {
  std::vector<std::string> parts;  // of "floors", "kernels", "train", "exact", "cases"
  GpuBenchOptions options;
};

extern const char* const kUsage;

/// Throws Error{"invalid_argument"} with the reason.
CommandLine read_command_line(std::span<const char* const> args);

}  // namespace zerofleet::bench
