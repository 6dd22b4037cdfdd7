#pragma once

#include <cstddef>

// The books of the one pool of the emulated device: what is in use as the host sees it. A pool gives to a stream what
// was freed in that stream before, whether the device has come that far or not.
namespace zerofleet::emulator {

/// Null as take() (memory.h). True in `grew` where the pool had to get memory.
void* take_from_pool(std::size_t num_bytes, bool& grew);
/// Marks memory as free for the books; give_back() ends its life. False for memory of no pool.
bool free_in_pool(void* data);
/// Sets the bytes that the pool may keep beyond those in use.
void set_pool_threshold(std::size_t num_bytes);
/// Sets the peak to the amount in use.
void reset_pool_peak();

struct PoolSizes {
  std::size_t in_use, peak, reserved;
};
PoolSizes pool_sizes();

}  // namespace zerofleet::emulator
