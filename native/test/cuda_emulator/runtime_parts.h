#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>

#include "test/cuda_emulator/work_queue.h"

// State shared by the calls of the emulated runtime.
namespace zerofleet::emulator {

/// Counters behind emulator.h's Counts.
struct Tally {
  std::atomic<std::int64_t> allocations{0}, pool_growths{0}, launches{0}, copies{0}, waits{0};
};
Tally& tally();

/// Returns the result of a call whose own outcome is `status`: a test may inject a failure. Failures become the last
/// error.
cudaError_t result(cudaError_t status);
/// Null is the default stream.
WorkQueue& queue_of(cudaStream_t stream);
void wait_for_device();

}  // namespace zerofleet::emulator
