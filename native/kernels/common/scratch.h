#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <typeindex>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/context.h"

namespace zerofleet {

/// State that a device's kernels keep between calls, such as handles of libraries and algorithms chosen for a shape.
struct KernelState {
  virtual ~KernelState() = default;
};

/// Temporary memory of kernels: one area per worker of the context's pool, and one that all of them share. It grows to
/// the largest request and is kept, so that steps after the first allocate nothing. Contents never outlive one kernel
/// call.
class Scratch {
 public:
  explicit Scratch(const Context& ctx);

  /// The device's own of a family of kernels, which is made at the first call.
  template <class State, class Make>
  State& state(const Make& make) {
    std::unique_ptr<KernelState>& state = states_[std::type_index(typeid(State))];
    if (state == nullptr) state = make();
    return static_cast<State&>(*state);
  }

  /// Makes room for `num_bytes` per worker and `num_shared_bytes` for all. Not inside a parallel section.
  void reserve(std::size_t num_bytes, std::size_t num_shared_bytes = 0);
  /// Bytes of all workers together, including shared memory.
  std::size_t num_bytes() const { return areas_.size() * num_bytes_ + shared_.num_bytes(); }
  std::byte* area(int worker) { return areas_[static_cast<std::size_t>(worker)].data(); }
  std::byte* shared() { return shared_.data(); }

 private:
  Device device_;
  std::size_t num_bytes_ = 0;  // of each area
  std::vector<Buffer> areas_;
  Buffer shared_;
  std::map<std::type_index, std::unique_ptr<KernelState>> states_;
};

/// Cuts an area into arrays, each aligned to a cache line. Run once with no area it only measures.
class Carver {
 public:
  explicit Carver(std::byte* area = nullptr) : area_(area) {}

  template <class T>
  T* take(std::int64_t count) {
    T* array = area_ == nullptr ? nullptr : reinterpret_cast<T*>(area_ + used_);
    used_ += (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return array;
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* area_;
  std::size_t used_ = 0;
};

}  // namespace zerofleet
