#pragma once

#include <cstdint>
#include <vector>

#include "bench/thread_job.h"
#include "core/system/cpu_isa.h"
#include "test/data/written_tokens.h"
#include "test/kernels/test_machine.h"

namespace zerofleet::test {

using bench::SavedState;

/// A job small enough to run dozens of times: two layers, grouped-query attention, parameters that straddle block
/// boundaries. It has seven leaves per step, so that no world size but 1 divides them. Its corpus has an uneven number
/// of sequences.
class TinyJob : public bench::ThreadJob {
 public:
  explicit TinyJob(DType precision, CpuIsa isa = best_cpu_isa(), std::int64_t sequence_length = 17);

 private:
  TemporaryFile tokens_, validation_tokens_;  // 23 and 9 sequences
};

}  // namespace zerofleet::test
