#include "kernels/elementwise/soft_cap.h"

#include "core/device/context.h"
#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/common/cpu/row_chunks.h"
#include "kernels/elementwise/simd/soft_cap.h"

namespace zerofleet::cpu {

void soft_cap(const Context& ctx, float cap, const ConstMatrix& x, const Matrix& y) {
  const auto kernel = ZF_PICK_KERNEL(ctx.cpu_isa, soft_cap_rows);
  for_row_chunks(ctx, x.rows, [&](std::int64_t row, std::int64_t rows) {
    kernel({cap, rows_from(x, row), rows_from(y, row), rows, x.cols, x.dtype});
  });
}

}  // namespace zerofleet::cpu
