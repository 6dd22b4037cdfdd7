#pragma once

#include <cstdint>

#include "zero/step/zero_memory.h"
#include "zero/step/zero_options.h"

namespace zerofleet {

/// Ranks of one process that train nothing but exercise the whole ZeRO core, for measuring the memory that it takes.
struct MemoryProbe {
  std::int64_t num_params = 0;        // elements, Ψ, in parameters of param_numel (the last one may be smaller)
  std::int64_t param_numel = 1 << 20;
  int world_size = 1;
  int num_steps = 2;
  ZeroOptions options;                // num_leaves is set to the number that the lanes or the ranks need
};

/// Runs the steps with one thread per rank; what rank 0 keeps, by part. All memory of all ranks has been touched when it
/// returns, so the process's peak resident set is what they took together.
/// Throws Error{"invalid_argument"} for sizes below 1, and what a ZeroOptimizer throws.
ZeroMemory run_memory_probe(const MemoryProbe& probe);

}  // namespace zerofleet
