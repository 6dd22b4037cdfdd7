#include "kernels/elementwise/row_gate.h"

#include "core/device/context.h"
#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/common/cpu/row_chunks.h"
#include "kernels/elementwise/simd/row_gate.h"

namespace zerofleet::cpu {

void add_gated(const Context& ctx, const ConstMatrix& gate, const ConstMatrix& x, const Matrix& y) {
  const auto kernel = ZF_PICK_KERNEL(ctx.cpu_isa, add_gated_rows);
  for_row_chunks(ctx, x.rows, [&](std::int64_t row, std::int64_t rows) {
    RowGateArgs chunk;
    chunk.gate = rows_from(gate, row);
    chunk.x = rows_from(x, row);
    chunk.y = rows_from(y, row);
    chunk.rows = rows;
    chunk.cols = x.cols;
    chunk.dtype = x.dtype;
    kernel(chunk);
  });
}

void add_gated_backward(const Context& ctx, const GatedBackward& args) {
  const auto kernel = ZF_PICK_KERNEL(ctx.cpu_isa, add_gated_backward_rows);
  for_row_chunks(ctx, args.x.rows, [&](std::int64_t row, std::int64_t rows) {
    RowGateArgs chunk;
    chunk.gate = rows_from(args.gate, row);
    chunk.x = rows_from(args.x, row);
    chunk.dy = rows_from(args.dy, row);
    chunk.dx = rows_from(args.dx, row);
    chunk.dgate = rows_from(args.dgate, row);
    chunk.rows = rows;
    chunk.cols = args.x.cols;
    chunk.dtype = args.x.dtype;
    kernel(chunk);
  });
}

}  // namespace zerofleet::cpu
