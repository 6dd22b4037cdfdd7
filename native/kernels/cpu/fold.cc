#include "kernels/cpu/simd/fold.h"

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/isa_dispatch.h"

namespace zerofleet::cpu {

void fold_pieces(const Context& context, std::span<const std::byte> pieces, DType dtype, std::int64_t num_pieces,
                 bool restart, std::span<float> sum) {
  const auto add_bf16 = ZF_PICK_KERNEL(context.cpu_isa, fold_bf16);
  const auto add_f32 = ZF_PICK_KERNEL(context.cpu_isa, fold_f32);
  const auto numel = static_cast<std::int64_t>(sum.size());
  for_each_tile(context, numel, [&](std::int64_t begin, std::int64_t end) {
    if (dtype == DType::kBF16) {
      const auto* first = reinterpret_cast<const std::uint16_t*>(pieces.data()) + begin;
      add_bf16(first, numel, num_pieces, restart, sum.data() + begin, end - begin);
    } else {
      const auto* first = reinterpret_cast<const float*>(pieces.data()) + begin;
      add_f32(first, numel, num_pieces, restart, sum.data() + begin, end - begin);
    }
  });
}

}  // namespace zerofleet::cpu
