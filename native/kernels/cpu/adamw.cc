#include "kernels/cpu/simd/adamw.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/isa_dispatch.h"

namespace zerofleet::cpu {

void adamw(const Context& context, std::span<const AdamWSegment> segments, DType param_dtype,
           const AdamWScalars& scalars) {
  const auto update_bf16 = ZF_PICK_KERNEL(context.cpu_isa, adamw_bf16);
  const auto update_f32 = ZF_PICK_KERNEL(context.cpu_isa, adamw_f32);
  // Tiles of all segments are numbered through, so that many short segments still make one parallel pass.
  std::vector<std::int64_t> first_tiles{0};
  for (const AdamWSegment& segment : segments) {
    first_tiles.push_back(first_tiles.back() + (segment.numel + kTileNumel - 1) / kTileNumel);
  }
  context.pool->parallel_for(first_tiles.back(), [&](std::int64_t task, int) {
    const auto index = static_cast<std::size_t>(std::ranges::upper_bound(first_tiles, task) - first_tiles.begin()) - 1;
    const AdamWSegment& segment = segments[index];
    const std::int64_t begin = (task - first_tiles[index]) * kTileNumel;
    const std::int64_t numel = std::min(kTileNumel, segment.numel - begin);
    const AdamWTile tile{segment.master + begin, segment.exp_avg + begin, segment.exp_avg_sq + begin,
                         segment.grad + begin,   numel,                   segment.decay ? scalars.decay_factor : 1.0F};
    if (param_dtype == DType::kBF16) {
      update_bf16(tile, reinterpret_cast<std::uint16_t*>(segment.params) + begin, scalars);
    } else {
      update_f32(tile, reinterpret_cast<float*>(segment.params) + begin, scalars);
    }
  });
}

}  // namespace zerofleet::cpu
