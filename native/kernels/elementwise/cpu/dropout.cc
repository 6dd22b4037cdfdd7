#include "kernels/elementwise/dropout.h"

#include "core/device/context.h"
#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/common/cpu/row_chunks.h"
#include "kernels/elementwise/simd/dropout.h"

namespace zerofleet::cpu {

void dropout(const Context& ctx, const DropoutRule& rule, const ConstMatrix& x, const Matrix& y) {
  const auto kernel = ZF_PICK_KERNEL(ctx.cpu_isa, dropout_rows);
  for_row_chunks(ctx, x.rows, [&](std::int64_t row, std::int64_t rows) {
    DropoutArgs chunk;
    chunk.stream = rule.stream;
    chunk.dropped_below = rule.dropped_below;
    chunk.scale = rule.scale;
    chunk.adds = rule.adds;
    chunk.x = rows_from(x, row);
    chunk.y = rows_from(y, row);
    chunk.first_element = rule.first_element + static_cast<std::uint64_t>(row * x.cols);
    chunk.elements_per_row = static_cast<std::uint64_t>(x.cols);
    chunk.rows = rows;
    chunk.cols = x.cols;
    chunk.dtype = x.dtype;
    kernel(chunk);
  });
}

}  // namespace zerofleet::cpu
