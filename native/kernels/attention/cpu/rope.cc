#include "kernels/attention/rope.h"

#include "core/device/context.h"
#include "kernels/attention/simd/rope.h"
#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/common/cpu/row_chunks.h"

namespace zerofleet::cpu {

void rope(const Context& ctx, const Rope& args) {
  const auto kernel = ZF_PICK_KERNEL(ctx.cpu_isa, rope_rows);
  for_row_chunks(ctx, args.x.rows, [&](std::int64_t row, std::int64_t rows) {
    RopeArgs chunk;
    chunk.x = args.x.at(row, 0);
    chunk.stride = args.x.stride;
    chunk.cosine = args.table->cosine().data();
    chunk.sine = args.table->sine().data();
    chunk.positions = args.positions.empty() ? nullptr : args.positions.data() + row;
    chunk.first_position = row;
    chunk.num_positions = args.sequence_length;
    chunk.rows = rows;
    chunk.heads = args.num_heads;
    chunk.head_dim = args.x.cols / args.num_heads;
    chunk.rotary_dim = args.table->rotary_dim();
    chunk.interleaved = args.interleaved;
    chunk.inverse = args.inverse;
    chunk.dtype = args.x.dtype;
    kernel(chunk);
  });
}

}  // namespace zerofleet::cpu
