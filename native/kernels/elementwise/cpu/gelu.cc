#include "kernels/elementwise/gelu.h"

#include "core/device/context.h"
#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/common/cpu/row_chunks.h"
#include "kernels/elementwise/simd/gelu.h"

namespace zerofleet::cpu {

void gelu(const Context& ctx, GeluKind kind, const ConstMatrix& x, const Matrix& y) {
  const auto kernel =
      kind == GeluKind::kTanh ? ZF_PICK_KERNEL(ctx.cpu_isa, gelu_tanh_rows) : ZF_PICK_KERNEL(ctx.cpu_isa, gelu_rows);
  for_row_chunks(ctx, x.rows, [&](std::int64_t row, std::int64_t rows) {
    GeluArgs chunk;
    chunk.x = rows_from(x, row);
    chunk.result = rows_from(y, row);
    chunk.rows = rows;
    chunk.cols = x.cols;
    chunk.dtype = x.dtype;
    kernel(chunk);
  });
}

void gelu_backward(const Context& ctx, GeluKind kind, const ConstMatrix& x, const ConstMatrix& dy, const Matrix& dx) {
  const auto kernel = kind == GeluKind::kTanh ? ZF_PICK_KERNEL(ctx.cpu_isa, gelu_tanh_backward_rows)
                                              : ZF_PICK_KERNEL(ctx.cpu_isa, gelu_backward_rows);
  for_row_chunks(ctx, x.rows, [&](std::int64_t row, std::int64_t rows) {
    GeluArgs chunk;
    chunk.x = rows_from(x, row);
    chunk.dy = rows_from(dy, row);
    chunk.result = rows_from(dx, row);
    chunk.rows = rows;
    chunk.cols = x.cols;
    chunk.dtype = x.dtype;
    kernel(chunk);
  });
}

}  // namespace zerofleet::cpu
