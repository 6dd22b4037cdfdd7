#include "kernels/norm/rmsnorm.h"

#include <algorithm>
#include <vector>

#include "core/device/context.h"
#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/common/cpu/row_chunks.h"
#include "kernels/common/simd/add_rows.h"
#include "kernels/norm/simd/rmsnorm.h"

namespace zerofleet::cpu {

void rmsnorm(const Context& ctx, const RmsNormForward& args) {
  const auto kernel = ZF_PICK_KERNEL(ctx.cpu_isa, rmsnorm_rows);
  for_row_chunks(ctx, args.x.rows, [&](std::int64_t row, std::int64_t rows) {
    RmsNormArgs chunk;
    chunk.x = rows_from(args.x, row);
    chunk.delta = rows_from(args.delta, row);
    chunk.sum = rows_from(args.sum, row);
    chunk.weight = args.weight;
    chunk.weight_offset = static_cast<float>(args.weight_offset);
    chunk.y = rows_from(args.y, row);
    chunk.rstd = args.rstd.data() + row;
    chunk.eps = static_cast<float>(args.eps);
    chunk.rows = rows;
    chunk.cols = args.x.cols;
    chunk.dtype = args.x.dtype;
    kernel(chunk);
  });
}

void rmsnorm_backward(const Context& ctx, const RmsNormBackward& args) {
  const auto kernel = ZF_PICK_KERNEL(ctx.cpu_isa, rmsnorm_backward_rows);
  const auto add = ZF_PICK_KERNEL(ctx.cpu_isa, add_row);
  const std::int64_t cols = args.x.cols;
  std::vector<float> partial(args.dweight.empty() ? 0 : static_cast<std::size_t>(num_row_chunks(args.x.rows) * cols));
  for_row_chunks(ctx, args.x.rows, [&](std::int64_t row, std::int64_t rows) {
    RmsNormBackwardArgs chunk;
    chunk.dy = rows_from(args.dy, row);
    chunk.x = rows_from(args.x, row);
    chunk.weight = args.weight;
    chunk.weight_offset = static_cast<float>(args.weight_offset);
    chunk.rstd = args.rstd.data() + row;
    chunk.residual = rows_from(args.residual, row);
    chunk.dx = rows_from(args.dx, row);
    chunk.dweight = partial.empty() ? nullptr : partial.data() + row / kRowChunk * cols;
    chunk.rows = rows;
    chunk.cols = cols;
    chunk.dtype = args.x.dtype;
    kernel(chunk);
  });
  if (args.dweight.empty()) return;
  std::ranges::fill(args.dweight, 0.0F);
  for (std::int64_t chunk = 0; chunk < num_row_chunks(args.x.rows); ++chunk) {
    add(args.dweight.data(), partial.data() + chunk * cols, cols, DType::kF32);
  }
}

}  // namespace zerofleet::cpu
