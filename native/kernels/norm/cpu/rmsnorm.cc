#include "kernels/norm/rmsnorm.h"

#include <algorithm>
#include <vector>

#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/common/cpu/row_chunks.h"
#include "kernels/common/simd/add_rows.h"
#include "kernels/norm/cpu/launch.h"
#include "kernels/norm/simd/rmsnorm.h"

namespace zerofleet::cpu {

void rmsnorm(const Context& ctx, const RmsNormForward& args) {
  const auto kernel = ZF_PICK_KERNEL(ctx.cpu_isa, rmsnorm_rows);
  for_row_chunks(ctx, args.x.rows, [&](std::int64_t row, std::int64_t rows) {
    RmsNormArgs chunk;
    chunk.x = args.x.at(row, 0);
    chunk.x_stride = args.x.stride;
    if (args.delta.data != nullptr) {
      chunk.delta = args.delta.at(row, 0);
      chunk.delta_stride = args.delta.stride;
      chunk.sum = args.sum.at(row, 0);
      chunk.sum_stride = args.sum.stride;
    }
    chunk.weight = args.weight;
    chunk.y = args.y.at(row, 0);
    chunk.y_stride = args.y.stride;
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
  std::vector<float> partial(static_cast<std::size_t>(num_row_chunks(args.x.rows) * cols));
  for_row_chunks(ctx, args.x.rows, [&](std::int64_t row, std::int64_t rows) {
    RmsNormBackwardArgs chunk;
    chunk.dy = args.dy.at(row, 0);
    chunk.dy_stride = args.dy.stride;
    chunk.x = args.x.at(row, 0);
    chunk.x_stride = args.x.stride;
    chunk.weight = args.weight;
    chunk.rstd = args.rstd.data() + row;
    if (args.residual.data != nullptr) {
      chunk.residual = args.residual.at(row, 0);
      chunk.residual_stride = args.residual.stride;
    }
    chunk.dx = args.dx.at(row, 0);
    chunk.dx_stride = args.dx.stride;
    chunk.dweight = partial.data() + row / kRowChunk * cols;
    chunk.rows = rows;
    chunk.cols = cols;
    chunk.dtype = args.x.dtype;
    kernel(chunk);
  });
  std::ranges::fill(args.dweight, 0.0F);
  for (std::int64_t chunk = 0; chunk < num_row_chunks(args.x.rows); ++chunk) {
    add(args.dweight.data(), partial.data() + chunk * cols, cols, DType::kF32);
  }
}

}  // namespace zerofleet::cpu
