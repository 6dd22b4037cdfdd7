#pragma once

#include <cstddef>
#include <vector>

#include "core/cuda/cuda_runtime.h"
#include "core/device/stream.h"
#include "core/device/transfer.h"

namespace zerofleet::cuda {

/// Memory of the device for `count` of T, taken and given back in the order of the stream.
template <class T>
class Temporary {
 public:
  Temporary(const Context& context, std::size_t count)
      : stream_(stream_of(context)),
        count_(count),
        data_(reinterpret_cast<T*>(allocate(stream_.handle(), count * sizeof(T)))) {}
  ~Temporary() { release(stream_.handle(), reinterpret_cast<std::byte*>(data_)); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return count_; }
  const Stream& stream() const { return stream_; }

 private:
  Stream& stream_;
  std::size_t count_;
  T* data_;
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
    copy(stream_.handle(), values.data(), values_.data(), values.size() * sizeof(T));
    stream_.synchronize();
    return values;
  }

 private:
  Stream& stream_;
  Temporary<T> values_;
};

}  // namespace zerofleet::cuda
