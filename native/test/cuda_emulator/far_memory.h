#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace zerofleet::test {

/// Zeros in a range of addresses, of which only the pages that are written take memory. Throws std::bad_alloc.
class FarMemory {
 public:
  explicit FarMemory(std::size_t num_bytes)
      : num_bytes_(num_bytes),
        data_(::mmap(nullptr, num_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (data_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~FarMemory() { ::munmap(data_, num_bytes_); }
  FarMemory(const FarMemory&) = delete;
  FarMemory& operator=(const FarMemory&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::size_t num_bytes() const { return num_bytes_; }

 private:
  std::size_t num_bytes_;
  void* data_;
};

}  // namespace zerofleet::test
