#include "kernels/elementwise/swiglu.h"

#include "core/device/context.h"
#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/common/cpu/row_chunks.h"
#include "kernels/elementwise/simd/swiglu.h"

namespace zerofleet::cpu {

void swiglu(const Context& ctx, const ConstMatrix& gate_up, const Matrix& act) {
  const auto kernel = ZF_PICK_KERNEL(ctx.cpu_isa, swiglu_rows);
  for_row_chunks(ctx, act.rows, [&](std::int64_t row, std::int64_t rows) {
    SwigluArgs chunk;
    chunk.gate_up = rows_from(gate_up, row);
    chunk.act = rows_from(act, row);
    chunk.rows = rows;
    chunk.cols = act.cols;
    chunk.dtype = act.dtype;
    kernel(chunk);
  });
}

void swiglu_backward(const Context& ctx, const ConstMatrix& gate_up, const ConstMatrix& dact, const Matrix& dgate_up) {
  const auto kernel = ZF_PICK_KERNEL(ctx.cpu_isa, swiglu_backward_rows);
  for_row_chunks(ctx, dact.rows, [&](std::int64_t row, std::int64_t rows) {
    SwigluArgs chunk;
    chunk.gate_up = rows_from(gate_up, row);
    chunk.dact = rows_from(dact, row);
    chunk.dgate_up = rows_from(dgate_up, row);
    chunk.rows = rows;
    chunk.cols = dact.cols;
    chunk.dtype = dact.dtype;
    kernel(chunk);
  });
}

}  // namespace zerofleet::cpu
