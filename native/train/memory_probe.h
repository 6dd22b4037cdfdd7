#pragma once

#include <cstdint>

#include "zero/step/zero_memory.h"
#include "zero/step/zero_options.h"

namespace zerofleet {

/// Ranks of one process that run all of the ZeRO core without a model, to measure its memory.
struct MemoryProbe {
  std::int64_t num_params = 0;  // Ψ, elements in all; each parameter has param_numel, the last may have fewer
  std::int64_t param_numel = 1 << 20;
  int world_size = 1;
  int num_steps = 2;
  ZeroOptions options;  // num_leaves is raised to what lanes or ranks need
};

/// Runs the steps with one thread per rank. Returns the bytes of rank 0, by part. The ranks touch all their memory, so
/// the peak resident set of the process shows what they take together. Throws Error{"invalid_argument"} for sizes below
/// 1, and the errors of ZeroOptimizer.
ZeroMemory run_memory_probe(const MemoryProbe& probe);

}  // namespace zerofleet
