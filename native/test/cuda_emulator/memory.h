#pragma once

#include <cstddef>

// The memory of the emulated device, and host memory that is pinned for it.
namespace zerofleet::emulator {

/// Null if zero bytes are requested or the device has no more.
void* take(std::size_t num_bytes);
/// False for memory that take() did not give.
bool give_back(void* data);
/// Returns true if the whole range lies in one allocation of the device.
bool on_device(const void* data, std::size_t num_bytes);

struct MemorySizes {
  std::size_t used, limit;
};
MemorySizes memory_sizes();

/// False where that was done before, and not undone.
bool pin(const void* data, std::size_t num_bytes);
bool unpin(const void* data);
/// Host memory that the device reads when the copy's turn has come; of other host memory CUDA takes a copy at once.
bool is_pinned(const void* data, std::size_t num_bytes);

}  // namespace zerofleet::emulator
