#include "kernels/flat/cast.h"

#include "core/error.h"
#include "kernels/flat/cpu/launch.h"
#include "kernels/flat/cuda/launch.h"

namespace zerofleet {

void cast_from_f32(const Context& context, std::span<const float> source, DType dtype, std::span<std::byte> target,
                   float factor) {
  require(target.size() == source.size() * size_of(dtype), "invalid_argument", "source and target differ in elements");
  switch (context.device.kind) {
    case DeviceKind::kCpu: return cpu::cast_from_f32(context, source, dtype, target, factor);
    case DeviceKind::kCuda: return cuda::cast_from_f32(context, source, dtype, target, factor);
  }
}

void cast_to_f32(const Context& context, std::span<const std::byte> source, DType dtype, std::span<float> target) {
  require(source.size() == target.size() * size_of(dtype), "invalid_argument", "source and target differ in elements");
  switch (context.device.kind) {
    case DeviceKind::kCpu: return cpu::cast_to_f32(context, source, dtype, target);
    case DeviceKind::kCuda: return cuda::cast_to_f32(context, source, dtype, target);
  }
}

}  // namespace zerofleet
