#include "kernels/norm/head_norm.h"

#include <algorithm>
#include <vector>

#include "core/device/context.h"
#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/common/cpu/row_chunks.h"
#include "kernels/common/simd/add_rows.h"
#include "kernels/norm/simd/rmsnorm.h"

// A head of a chunk of rows is a matrix with the rows' stride, so the inner loops are those of the RMS norm.
namespace zerofleet::cpu {

void head_norm(const Context& ctx, const HeadNormForward& args) {
  const auto kernel = ZF_PICK_KERNEL(ctx.cpu_isa, rmsnorm_rows);
  const std::int64_t num_heads = args.x.cols / args.head_dim;
  for_row_chunks(ctx, args.x.rows, [&](std::int64_t row, std::int64_t rows) {
    for (std::int64_t head = 0; head < num_heads; ++head) {
      RmsNormArgs chunk;
      chunk.x = rows_from(args.x, row, head * args.head_dim);
      chunk.weight = args.weight;
      chunk.weight_offset = static_cast<float>(args.weight_offset);
      chunk.y = rows_from(args.y, row, head * args.head_dim);
      chunk.rstd = args.rstd.data() + head * args.x.rows + row;
      chunk.eps = static_cast<float>(args.eps);
      chunk.rows = rows;
      chunk.cols = args.head_dim;
      chunk.dtype = args.x.dtype;
      kernel(chunk);
    }
  });
}

void head_norm_backward(const Context& ctx, const HeadNormBackward& args) {
  const auto kernel = ZF_PICK_KERNEL(ctx.cpu_isa, rmsnorm_backward_rows);
  const auto add = ZF_PICK_KERNEL(ctx.cpu_isa, add_row);
  const std::int64_t num_heads = args.x.cols / args.head_dim;
  const std::int64_t num_parts = num_row_chunks(args.x.rows) * num_heads;
  std::vector<float> partial(args.dweight.empty() ? 0 : static_cast<std::size_t>(num_parts * args.head_dim));
  for_row_chunks(ctx, args.x.rows, [&](std::int64_t row, std::int64_t rows) {
    for (std::int64_t head = 0; head < num_heads; ++head) {
      RmsNormBackwardArgs chunk;
      chunk.dy = rows_from(args.dy, row, head * args.head_dim);
      chunk.x = rows_from(args.x, row, head * args.head_dim);
      chunk.weight = args.weight;
      chunk.weight_offset = static_cast<float>(args.weight_offset);
      chunk.rstd = args.rstd.data() + head * args.x.rows + row;
      chunk.dx = rows_from(args.dx, row, head * args.head_dim);
      chunk.dweight = partial.empty() ? nullptr : partial.data() + (row / kRowChunk * num_heads + head) * args.head_dim;
      chunk.rows = rows;
      chunk.cols = args.head_dim;
      chunk.dtype = args.x.dtype;
      kernel(chunk);
    }
  });
  if (args.dweight.empty()) return;
  std::ranges::fill(args.dweight, 0.0F);
  for (std::int64_t part = 0; part < num_parts; ++part) {
    add(args.dweight.data(), partial.data() + part * args.head_dim, args.head_dim, DType::kF32);
  }
}

}  // namespace zerofleet::cpu
