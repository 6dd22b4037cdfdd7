#pragma once

#include <string>
#include <vector>

#include "core/device/context.h"
#include "core/error.h"
#include "core/system/cpu_isa.h"
#include "test/sanitized.h"

namespace zerofleet::test {

/// Every instruction-set path that this build has and this machine can run. Under ThreadSanitizer the best one: threads
/// share work in the same way on every path.
inline std::vector<CpuIsa> available_isas() {
  if (kThreadSanitized) return {best_cpu_isa()};
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
