#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

// Copies from device memory to shared memory that run beside the thread that queued them (PTX: cp.async). The emulated
// twins make each copy as late as possible, so that a premature read is found.
namespace zerofleet::cuda {

/// Queues a copy of 16 bytes, or of zeros; both addresses are multiples of 16.
__device__ inline void copy16_async(void* shared, const void* global, bool zeros);
/// Closes a group of this thread's copies since the last call; it may be empty.
__device__ inline void end_copy_group();
/// Waits for this thread's groups but the newest kNewest.
template <int kNewest>
__device__ inline void wait_for_groups();
/// Waits for all copies of this thread.
__device__ inline void wait_for_copies();

#if defined(__CUDACC__)

__device__ inline unsigned shared_address(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

__device__ inline void copy16_async(void* shared, const void* global, bool zeros) {
  const int num_bytes = zeros ? 0 : 16;  // the rest of the 16 bytes becomes zeros
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global),
               "r"(num_bytes)
               : "memory");
}
__device__ inline void end_copy_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kNewest>
__device__ inline void wait_for_groups() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kNewest) : "memory");
}
__device__ inline void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

#else

struct PendingCopy {
  void* shared;
  const void* global;
  bool zeros;

  void make() const {
    if (zeros) {
      std::memset(shared, 0, 16);
    } else {
      std::memcpy(shared, global, 16);
    }
  }
};

/// Copy groups of a thread, the oldest first; the last one is open.
using PendingGroups = std::deque<std::vector<PendingCopy> >;

inline PendingGroups& pending_groups() {
  static thread_local std::array<PendingGroups, 1024> by_thread;
  PendingGroups& mine = by_thread[threadIdx.x];
  if (mine.empty()) mine.emplace_back();
  return mine;
}

inline void copy16_async(void* shared, const void* global, bool zeros) {
  if ((reinterpret_cast<std::uintptr_t>(shared) | reinterpret_cast<std::uintptr_t>(global)) % 16 != 0) std::abort();
  pending_groups().back().push_back({shared, global, zeros});
}

inline void end_copy_group() { pending_groups().emplace_back(); }

inline void make_copies(std::size_t num_left) {
  PendingGroups& groups = pending_groups();
  while (groups.size() > num_left) {
    for (const PendingCopy& copy : groups.front()) copy.make();
    groups.pop_front();
  }
}

template <int kNewest>
inline void wait_for_groups() {
  make_copies(kNewest + 1);
}
inline void wait_for_copies() { make_copies(0); }

#endif

}  // namespace zerofleet::cuda
