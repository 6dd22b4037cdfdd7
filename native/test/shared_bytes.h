#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "core/cuda/cuda_runtime.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace zerofleet::test {

struct ReleaseShared {
  bool pinned = false;
  std::size_t room = 0;
  void operator()(std::byte* data) const {
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(data, room);
#endif
    if (pinned) cuda::unpin(data);
    std::free(data);
  }
};

/// Memory of a test that the host and every device of this machine read and write at one address. With a CUDA device it
/// is pinned host memory. Code that queued work on it synchronises before reading it.
class SharedBytes {
 public:
  SharedBytes() = default;
  explicit SharedBytes(std::size_t num_bytes) : num_bytes_(num_bytes) {
    const std::size_t room = room_bytes();
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, room)));
    if (data_ == nullptr) throw std::bad_alloc();
    std::memset(data_.get(), 0, room);
    data_.get_deleter().pinned = cuda::num_devices() > 0;
    if (data_.get_deleter().pinned) cuda::pin({DeviceKind::kCuda, 0}, data_.get(), room);
#if defined(__SANITIZE_ADDRESS__)
    __asan_poison_memory_region(data_.get() + num_bytes, room - num_bytes);
    data_.get_deleter().room = room;
#endif
  }
  SharedBytes(const SharedBytes& other) : SharedBytes(other.num_bytes_) { copy(other); }
  SharedBytes(SharedBytes&&) noexcept = default;
  SharedBytes& operator=(const SharedBytes& other) {
    if (this != &other) *this = SharedBytes(other);
    return *this;
  }
  SharedBytes& operator=(SharedBytes&&) noexcept = default;

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  std::size_t size() const { return num_bytes_; }
  friend bool operator==(const SharedBytes& a, const SharedBytes& b) {
    return a.num_bytes_ == b.num_bytes_ && (a.num_bytes_ == 0 || std::memcmp(a.data(), b.data(), a.num_bytes_) == 0);
  }

 private:
  static constexpr std::size_t kPage = 4096;  // pages are pinned, so no two arrays may share one
  std::size_t room_bytes() const { return (num_bytes_ / kPage + 1) * kPage; }
  void copy(const SharedBytes& other) {
    if (num_bytes_ > 0) std::memcpy(data_.get(), other.data(), num_bytes_);
  }

  std::size_t num_bytes_ = 0;
  std::unique_ptr<std::byte, ReleaseShared> data_;
};

/// A vector of T in such memory.
template <class T>
class SharedValues {
 public:
  SharedValues() = default;
  explicit SharedValues(std::size_t count) : bytes_(count * sizeof(T)) {}
  explicit SharedValues(const std::vector<T>& values) : SharedValues(values.size()) {
    if (!values.empty()) std::memcpy(bytes_.data(), values.data(), bytes_.size());
  }

  std::size_t size() const { return bytes_.size() / sizeof(T); }
  T* data() { return reinterpret_cast<T*>(bytes_.data()); }
  const T* data() const { return reinterpret_cast<const T*>(bytes_.data()); }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  T* begin() { return data(); }
  T* end() { return data() + size(); }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  operator std::span<T>() { return {data(), size()}; }              // NOLINT: as vectors do
  operator std::span<const T>() const { return {data(), size()}; }  // NOLINT
  friend bool operator==(const SharedValues&, const SharedValues&) = default;

 private:
  SharedBytes bytes_;
};

}  // namespace zerofleet::test
