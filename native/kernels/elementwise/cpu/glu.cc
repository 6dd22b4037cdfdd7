#include "kernels/elementwise/glu.h"

#include "core/device/context.h"
#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/common/cpu/row_chunks.h"
#include "kernels/elementwise/simd/glu.h"

namespace zerofleet::cpu {

void glu(const Context& ctx, GluKind kind, const ConstMatrix& gate_up, const Matrix& act) {
  const auto kernel =
      kind == GluKind::kSilu ? ZF_PICK_KERNEL(ctx.cpu_isa, swiglu_rows) : ZF_PICK_KERNEL(ctx.cpu_isa, geglu_tanh_rows);
  for_row_chunks(ctx, act.rows, [&](std::int64_t row, std::int64_t rows) {
    GluArgs chunk;
    chunk.gate_up = rows_from(gate_up, row);
    chunk.act = rows_from(act, row);
    chunk.rows = rows;
    chunk.cols = act.cols;
    chunk.dtype = act.dtype;
    kernel(chunk);
  });
}

void glu_backward(const Context& ctx, GluKind kind, const ConstMatrix& gate_up, const ConstMatrix& dact,
                  const Matrix& dgate_up) {
  const auto kernel = kind == GluKind::kSilu ? ZF_PICK_KERNEL(ctx.cpu_isa, swiglu_backward_rows)
                                             : ZF_PICK_KERNEL(ctx.cpu_isa, geglu_tanh_backward_rows);
  for_row_chunks(ctx, dact.rows, [&](std::int64_t row, std::int64_t rows) {
    GluArgs chunk;
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
