#include "kernels/elementwise/swiglu.h"

#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/common/cpu/row_chunks.h"
#include "kernels/elementwise/cpu/launch.h"
#include "kernels/elementwise/simd/swiglu.h"

namespace zerofleet::cpu {

void swiglu(const Context& ctx, const ConstMatrix& gate_up, const Matrix& act) {
  const auto kernel = ZF_PICK_KERNEL(ctx.cpu_isa, swiglu_rows);
  for_row_chunks(ctx, act.rows, [&](std::int64_t row, std::int64_t rows) {
    SwigluArgs chunk;
    chunk.gate_up = gate_up.at(row, 0);
    chunk.gate_up_stride = gate_up.stride;
    chunk.act = act.at(row, 0);
    chunk.act_stride = act.stride;
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
    chunk.gate_up = gate_up.at(row, 0);
    chunk.gate_up_stride = gate_up.stride;
    chunk.dact = dact.at(row, 0);
    chunk.act_stride = dact.stride;
    chunk.dgate_up = dgate_up.at(row, 0);
    chunk.dgate_up_stride = dgate_up.stride;
    chunk.rows = rows;
    chunk.cols = dact.cols;
    chunk.dtype = dact.dtype;
    kernel(chunk);
  });
}

}  // namespace zerofleet::cpu
