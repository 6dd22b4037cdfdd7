#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/cuda/check.h"
#include "core/device/stream.h"
#include "core/device/transfer.h"

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
void launch(const char* name, const Stream& stream, const Spread& spread, void (*kernel)(Parameters...), Arguments&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = spread.blocks;
  config.blockDim = spread.threads;
  config.dynamicSmemBytes = spread.shared_bytes;
  config.stream = stream.handle();
  check(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), name);
}

/// Memory of the device for `count` of T, taken and given back in the order of the stream.
template <class T>
class Temporary {
 public:
  Temporary(const Context& context, std::size_t count) : stream_(stream_of(context)), count_(count) {
    void* data = nullptr;
    check(cudaMallocAsync(&data, count * sizeof(T), stream_.handle()), "allocating temporary memory of a kernel");
    data_ = static_cast<T*>(data);
  }
  ~Temporary() { cudaFreeAsync(data_, stream_.handle()); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return count_; }
  const Stream& stream() const { return stream_; }

 private:
  Stream& stream_;
  std::size_t count_;
  T* data_ = nullptr;
};

/// Such memory with results that a kernel writes and the host reads.
template <class T>
class Results {
 public:
  Results(const Context& context, std::size_t count) : stream_(stream_of(context)), values_(context, count) {}

  T* data() { return values_.data(); }

  /// Waits for the kernel.
  std::vector<T> fetch() {
    std::vector<T> values(values_.size());
    check(cudaMemcpyAsync(values.data(), values_.data(), values.size() * sizeof(T), cudaMemcpyDeviceToHost, stream_.handle()),
          "copying results of a kernel");
    stream_.synchronize();
    return values;
  }

 private:
  Stream& stream_;
  Temporary<T> values_;
};

}  // namespace zerofleet::cuda
