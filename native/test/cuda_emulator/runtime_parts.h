#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>

#include "test/cuda_emulator/work_queue.h"

// What the calls of the emulated runtime share.
namespace zerofleet::emulator {

/// What emulator.h's Counts tell.
struct Tally {
  std::atomic<std::int64_t> allocations{0}, pool_growths{0}, launches{0}, copies{0}, waits{0};
};
Tally& tally();

/// What a call returns whose own outcome is `status`: a test may want a failure. Failures become the last error.
cudaError_t result(cudaError_t status);
/// Null is the default stream.
WorkQueue& queue_of(cudaStream_t stream);
void wait_for_device();

}  // namespace zerofleet::emulator
