#pragma once

#include <string>
#include <vector>

#include "core/context.h"
#include "core/cpu_isa.h"
#include "core/error.h"

namespace zerofleet::test {

/// Every instruction-set path that this machine can run.
inline std::vector<CpuIsa> available_isas() {
  std::vector<CpuIsa> isas;
  for (const char* name : {"generic", "avx2", "avx512", "avx512bf16"}) {
    try {
      isas.push_back(cpu_isa_from_name(name));
    } catch (const Error&) {
      // This machine does not have it; the paths that it has are tested.
    }
  }
  return isas;
}

/// A context with a pool of its own.
struct Machine {
  Machine(CpuIsa isa, int num_threads) : pool(num_threads), ctx{Device{}, &pool, isa} {}
  ThreadPool pool;
  Context ctx;
};

}  // namespace zerofleet::test
