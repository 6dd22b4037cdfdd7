#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "core/cuda/check.h"
#include "core/device/stream.h"
#include "core/device/transfer.h"
#include "kernels/common/cuda/temporary.h"

// Helpers that the launchers share.
namespace zerofleet::cuda {

/// Threads of a block of the flat passes; each thread has four elements.
inline constexpr int kFlatThreads = 256;

inline unsigned num_blocks_for(std::int64_t items, std::int64_t items_per_block) {
  const std::int64_t count = (items + items_per_block - 1) / items_per_block;
  require(count <= INT32_MAX, "invalid_argument", "an array is too long for one kernel launch");
  return static_cast<unsigned>(count);
}

/// num_blocks_for() for the second dimension of a grid, which has at most 65535.
inline unsigned num_blocks_across(std::int64_t items, std::int64_t items_per_block) {
  const unsigned count = num_blocks_for(items, items_per_block);
  require(count <= 65535, "invalid_argument", "rows are too long for one kernel launch");
  return count;
}

/// Launch dimensions of a kernel: blocks of the grid, threads of a block, and bytes of dynamic shared memory.
struct Spread {
  dim3 blocks;
  unsigned threads;
  std::size_t shared_bytes = 0;
};

/// Queues a kernel; `name` is for errors. Arguments become those of the kernel as in a call.
template <class... Parameters, class... Arguments>
void launch(const char* name, const Stream& stream, const Spread& spread, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = spread.blocks;
  config.blockDim = spread.threads;
  config.dynamicSmemBytes = spread.shared_bytes;
  config.stream = stream.handle();
  check(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), name);
}

}  // namespace zerofleet::cuda
