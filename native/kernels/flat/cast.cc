#include "kernels/flat/cast.h"

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {

void cast_from_f32(const Context& context, std::span<const float> source, DType dtype, std::span<std::byte> target,
                   float factor) {
  require(target.size() == source.size() * size_of(dtype), "invalid_argument", "source and target differ in elements");
  backend_of(context).cast_from_f32(context, source, dtype, target, factor);
}

void cast_to_f32(const Context& context, std::span<const std::byte> source, DType dtype, std::span<float> target) {
  require(source.size() == target.size() * size_of(dtype), "invalid_argument", "source and target differ in elements");
  backend_of(context).cast_to_f32(context, source, dtype, target);
}

}  // namespace zerofleet
