#include "kernels/elementwise/bias.h"

#include <algorithm>
#include <span>
#include <vector>

#include "core/device/context.h"
#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/common/cpu/row_chunks.h"
#include "kernels/common/simd/add_rows.h"

namespace zerofleet::cpu {

void bias_gradient(const Context& ctx, const ConstMatrix& dy, std::span<float> dbias, bool accumulate) {
  const auto add = ZF_PICK_KERNEL(ctx.cpu_isa, add_row);
  std::vector<float> partial(static_cast<std::size_t>(num_row_chunks(dy.rows) * dy.cols));
  for_row_chunks(ctx, dy.rows, [&](std::int64_t row, std::int64_t rows) {
    float* sums = partial.data() + row / kRowChunk * dy.cols;
    for (std::int64_t i = row; i < row + rows; ++i) add(sums, dy.at(i, 0), dy.cols, dy.dtype);
  });
  if (!accumulate) std::ranges::fill(dbias, 0.0F);
  for (std::int64_t chunk = 0; chunk < num_row_chunks(dy.rows); ++chunk) {
    add(dbias.data(), partial.data() + chunk * dy.cols, dy.cols, DType::kF32);
  }
}

}  // namespace zerofleet::cpu
