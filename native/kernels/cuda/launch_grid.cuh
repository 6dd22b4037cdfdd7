#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/cuda/check.h"
#include "core/stream.h"
#include "core/transfer.h"

// What the launchers share.
namespace zerofleet::cuda {

/// Threads of a block of the flat passes; each thread has four elements.
inline constexpr int kFlatThreads = 256;

inline unsigned num_blocks_for(std::int64_t items, std::int64_t items_per_block) {
  const std::int64_t count = (items + items_per_block - 1) / items_per_block;
  require(count <= INT32_MAX, "invalid_argument", "an array is too long for one kernel launch");
  return static_cast<unsigned>(count);
}

/// How a kernel is spread: blocks of the grid, threads of a block, and bytes of dynamic shared memory.
struct Spread {
  dim3 blocks;
  unsigned threads;
  std::size_t shared_bytes = 0;
};

/// Queues a kernel; `name` is for errors. Arguments become those of the kernel as in a call.
template <class... Parameters, class... Arguments>
void launch(const char* name, const Stream& stream, const Spread& spread, void (*kernel)(Parameters...), Arguments&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = spread.blocks;
  config.blockDim = spread.threads;
  config.dynamicSmemBytes = spread.shared_bytes;
  config.stream = stream.handle();
  check(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), name);
}

/// `count` results of type T that a kernel writes and the host reads: memory of the device that is taken and given back
/// in the order of the stream.
template <class T>
class Results {
 public:
  Results(const Context& context, std::size_t count) : stream_(stream_of(context)), count_(count) {
    void* data = nullptr;
    check(cudaMallocAsync(&data, count * sizeof(T), stream_.handle()), "allocating results of a kernel");
    data_ = static_cast<T*>(data);
  }
  ~Results() { cudaFreeAsync(data_, stream_.handle()); }
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;

  T* data() { return data_; }

  /// Waits for the kernel.
  std::vector<T> fetch() {
    std::vector<T> values(count_);
    check(cudaMemcpyAsync(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost, stream_.handle()),
          "copying results of a kernel");
    stream_.synchronize();
    return values;
  }

 private:
  Stream& stream_;
  std::size_t count_;
  T* data_ = nullptr;
};

}  // namespace zerofleet::cuda
