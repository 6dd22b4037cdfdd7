#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

// A CUDA device on the host, so that the sources of the CUDA backend run where no GPU is. Kernels run thread by thread,
// with barriers, shared memory and exchange between the lanes of a warp. Streams are threads that work behind the
// host's back. The emulator finds what follows from the sources alone:
// - wrong indices (with AddressSanitizer also a byte beyond an array);
// - threads that miss a barrier;
// - results that depend on the order of warps;
// - memory that is read before it was written (fresh memory holds NaNs);
// - copies whose host memory changes too early;
// - events that are missing.
//
// The emulator says nothing of speed, nor of what nvcc and the hardware make of the sources.
namespace zerofleet::emulator {

/// Work of the device since the process began.
struct Counts {
  std::int64_t allocations = 0;   // of device memory, and frees
  std::int64_t pool_growths = 0;  // for which the device's pool had to get more memory
  std::int64_t launches = 0;
  std::int64_t copies = 0;
  std::int64_t waits = 0;  // of the host, for a stream or an event
};
Counts counts();

/// Sets the memory of the device: 4 GiB by default.
void set_memory_bytes(std::size_t num_bytes);
/// From now on every call of the runtime that can fail so gives `status`, until it is cudaSuccess again.
void fail_with(cudaError_t status);
/// Runs only the last `count` blocks of a grid's first dimension while it lives, so that a test can reach the end of a
/// long array.
class LastBlocks {
 public:
  explicit LastBlocks(unsigned count);
  ~LastBlocks();
  LastBlocks(const LastBlocks&) = delete;
  LastBlocks& operator=(const LastBlocks&) = delete;
};

/// Sets the newest version of CUDA that the driver supports, as 13000; 0: there is no driver.
void set_driver_version(int version);

/// For libraries that tests open: so many more ranks exchange with each other on the device (see stream_groups.h).
}  // namespace zerofleet::emulator
__attribute__((visibility("default"))) void zfRanksOnDevice(int more);
namespace zerofleet::emulator {

/// Between here and the parts of the emulator.
int num_visible_devices();
/// The status of calls that need a driver and a device.
cudaError_t status_of_driver();
/// Injects the fault that the environment requests (devices.cc), at the launch with this number.
void fail_as_asked(std::int64_t launch);
void run_grid(const dim3& grid, const dim3& block, std::size_t shared_bytes, const std::function<void()>& thread);

}  // namespace zerofleet::emulator
