#include "kernels/quantize/simd/quantize.h"

#include "core/device/context.h"
#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/common/cpu/row_chunks.h"
#include "kernels/common/matrix.h"
#include "kernels/quantize/formulas/blocks.h"

namespace zerofleet::cpu {

void quantize(const Context& ctx, const ConstMatrix& source, const QuantBlocks& target) {
  const auto run = ZF_PICK_KERNEL(ctx.cpu_isa, quantize_group);
  const std::int64_t blocks = target.rows * quant_blocks_of_row(target.cols);
  ctx.pool->parallel_for((blocks + kQuantGroup - 1) / kQuantGroup,
                         [&](std::int64_t group, int) { run(rows_from(source, 0), source.dtype, target, group); });
}

void dequantize(const Context& ctx, const ConstQuantBlocks& source, const Matrix& target) {
  const auto run = ZF_PICK_KERNEL(ctx.cpu_isa, unpack_rows);
  for_row_chunks(ctx, target.rows, [&](std::int64_t row, std::int64_t rows) {
    run({source, row, rows, 0, target.cols, rows_from(target, row), target.dtype});
  });
}

}  // namespace zerofleet::cpu
