#include "kernels/flat/simd/cast.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/device/context.h"
#include "core/dtype.h"
#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/flat/cast.h"
#include "kernels/flat/cpu/tiles.h"

namespace zerofleet::cpu {

void cast_from_f32(const Context& context, std::span<const float> source, DType dtype, std::span<std::byte> target,
                   float factor) {
  const auto scale = ZF_PICK_KERNEL(context.cpu_isa, scale_to);
  const bool is_copy = dtype == DType::kF32 && factor == 1.0F;
  for_each_tile(context, static_cast<std::int64_t>(source.size()), [&](std::int64_t begin, std::int64_t end) {
    std::byte* first = target.data() + static_cast<std::size_t>(begin) * size_of(dtype);
    if (is_copy) {
      std::memcpy(first, source.data() + begin, static_cast<std::size_t>(end - begin) * sizeof(float));
    } else {
      scale(source.data() + begin, factor, first, dtype, end - begin);
    }
  });
}

void cast_to_f32(const Context& context, std::span<const std::byte> source, DType dtype, std::span<float> target) {
  const auto widen = dtype == DType::kF16 ? ZF_PICK_KERNEL(context.cpu_isa, widen_from_f16)
                                          : ZF_PICK_KERNEL(context.cpu_isa, widen_from_bf16);
  for_each_tile(context, static_cast<std::int64_t>(target.size()), [&](std::int64_t begin, std::int64_t end) {
    if (dtype != DType::kF32) {
      widen(reinterpret_cast<const std::uint16_t*>(source.data()) + begin, target.data() + begin, end - begin);
    } else {
      std::memcpy(target.data() + begin, reinterpret_cast<const float*>(source.data()) + begin,
                  static_cast<std::size_t>(end - begin) * sizeof(float));
    }
  });
}

}  // namespace zerofleet::cpu
