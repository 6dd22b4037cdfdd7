#include "core/device/transfer.h"

#include <cstring>
#include <string>

#include "core/cuda/cuda_runtime.h"
#include "core/device/stream.h"
#include "core/error.h"

namespace zerofleet {
namespace {

bool is_cpu(const Device& device) { return device.kind == DeviceKind::kCpu; }

void check_sizes(std::span<const std::byte> target, std::span<const std::byte> source) {
  require(target.size() == source.size(), "invalid_argument",
          "a copy of " + std::to_string(source.size()) + " bytes to " + std::to_string(target.size()) + " bytes");
}

}  // namespace

Stream& stream_of(const Context& context) {
  cuda::use(context.device);
  require(context.stream != nullptr && context.stream->device() == context.device, "invalid_argument",
          "a context on " + to_string(context.device) + " needs a stream of that device");
  return *context.stream;
}

void copy_bytes(const Context& context, std::span<std::byte> target, Device target_device,
                std::span<const std::byte> source, Device source_device) {
  check_sizes(target, source);
  if (target.empty()) return;
  if (is_cpu(target_device) && is_cpu(source_device)) {
    std::memcpy(target.data(), source.data(), target.size());
    return;
  }
  Stream& stream = stream_of(context);
  cuda::copy(stream.handle(), target.data(), source.data(), target.size());
  if (is_cpu(target_device) || is_cpu(source_device)) stream.synchronize();
}

void copy_bytes(const Context& context, std::span<std::byte> target, std::span<const std::byte> source) {
  copy_bytes(context, target, context.device, source, context.device);
}

void queue_copy(Stream& stream, std::span<std::byte> target, std::span<const std::byte> source) {
  check_sizes(target, source);
  if (target.empty()) return;
  if (is_cpu(stream.device())) {
    std::memcpy(target.data(), source.data(), target.size());
  } else {
    cuda::use(stream.device());
    cuda::copy(stream.handle(), target.data(), source.data(), target.size());
  }
}

void fill_zero(const Context& context, std::span<std::byte> target) {
  if (target.empty()) return;
  if (is_cpu(context.device)) {
    std::memset(target.data(), 0, target.size());
  } else {
    cuda::fill_zero(stream_of(context).handle(), target.data(), target.size());
  }
}

void synchronize(const Context& context) {
  if (!is_cpu(context.device)) stream_of(context).synchronize();
}

}  // namespace zerofleet
