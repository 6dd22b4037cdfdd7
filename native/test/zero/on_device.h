#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/transfer.h"
#include "kernels/flat/block_stats.h"
#include "kernels/flat/cast.h"
#include "kernels/flat/fold.h"
#include "test/devices_here.h"

// The flat operations on arrays of a test in host memory, wherever the context computes.
namespace zerofleet::test {

/// Arrays of a test for an operation: the originals on a CPU, copies on other devices. A copy has the original's
/// distance from a multiple of 16 bytes.
class Mirror {
 public:
  explicit Mirror(const Context& context) : context_(context) {}

  template <class T>
  std::span<const T> in(std::span<const T> host) {
    const auto there = copied(std::as_bytes(host));
    return {reinterpret_cast<const T*>(there.data()), host.size()};
  }
  /// Output of the operation; fetch() copies it back.
  template <class T>
  std::span<T> inout(std::span<T> host) {
    const auto there = copied(std::as_bytes(host));
    changed_.push_back({std::as_writable_bytes(host), there});
    return {reinterpret_cast<T*>(there.data()), host.size()};
  }
  void fetch() {
    if (context_.device.kind == DeviceKind::kCpu) return;
    for (const auto& [host, there] : changed_) copy_bytes(context_, host, Device{}, there, context_.device);
  }

 private:
  struct Changed {
    std::span<std::byte> host;
    std::span<const std::byte> there;
  };

  std::span<std::byte> copied(std::span<const std::byte> host) {
    if (context_.device.kind == DeviceKind::kCpu || host.empty()) {
      return {const_cast<std::byte*>(host.data()), host.size()};
    }
    const std::size_t shift = reinterpret_cast<std::uintptr_t>(host.data()) % 16;
    Buffer& buffer = buffers_.emplace_back(context_.device, host.size() + shift);
    const std::span<std::byte> there(buffer.data() + shift, host.size());
    copy_bytes(context_, there, context_.device, host, Device{});
    return there;
  }

  Context context_;
  std::deque<Buffer> buffers_;
  std::vector<Changed> changed_;
};

inline void run_cast_from_f32(const Context& context, std::span<const float> source, DType dtype,
                              std::span<std::byte> target, float factor = 1) {
  Mirror there(context);
  cast_from_f32(context, there.in(source), dtype, there.inout(target), factor);
  there.fetch();
}

inline void run_cast_to_f32(const Context& context, std::span<const std::byte> source, DType dtype,
                            std::span<float> target) {
  Mirror there(context);
  cast_to_f32(context, there.in(source), dtype, there.inout(target));
  there.fetch();
}

inline void run_fold_pieces(const Context& context, Fold fold) {
  Mirror there(context);
  fold.pieces = there.in(fold.pieces);
  fold.sum = there.inout(fold.sum);
  fold_pieces(context, fold);
  there.fetch();
}

inline void run_block_stats(const Context& context, std::span<const std::byte> values, DType dtype,
                            std::int64_t block_numel, std::span<double> sum_squares, std::span<float> max_abs) {
  Mirror there(context);
  block_stats(context, there.in(values), dtype, block_numel, sum_squares, max_abs);
}

/// Calls body with a context on each CUDA device of this machine.
template <class Body>
void on_cuda_devices(const Body& body) {
  for (const Device device : devices_here()) {
    if (device.kind == DeviceKind::kCpu) continue;
    DeviceMachine machine(device);
    body(std::as_const(machine.ctx));
  }
}

}  // namespace zerofleet::test
