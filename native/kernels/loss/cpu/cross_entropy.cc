#include "kernels/loss/cross_entropy.h"

#include <algorithm>

#include "core/device/context.h"
#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/common/cpu/row_chunks.h"
#include "kernels/loss/simd/cross_entropy.h"

namespace zerofleet::cpu {
namespace {

constexpr std::int64_t kTaskLogits = 16384;  // logits of a task, but for a longer row

}  // namespace

void cross_entropy(const Context& ctx, const CrossEntropy& args) {
  const auto kernel = ZF_PICK_KERNEL(ctx.cpu_isa, cross_entropy_rows);
  const std::int64_t task_rows = std::max<std::int64_t>(1, kTaskLogits / args.logits.cols);
  const std::int64_t tasks = (args.logits.rows + task_rows - 1) / task_rows;
  ctx.pool->parallel_for(tasks, [&](std::int64_t task, int) {
    const std::int64_t row = task * task_rows, rows = std::min(task_rows, args.logits.rows - row);
    CrossEntropyArgs chunk;
    chunk.logits = static_cast<float*>(args.logits.at(row, 0));
    chunk.logits_stride = args.logits.stride;
    chunk.targets = args.targets.data() + row;
    chunk.losses = args.losses.data() + row;
    chunk.dlogits = rows_from(args.dlogits, row);
    chunk.dlogits_dtype = args.dlogits.dtype;
    chunk.grad_scale = args.grad_scale;
    chunk.factors = args.factors.empty() ? nullptr : args.factors.data() + row;
    chunk.soft_cap = args.soft_cap;
    chunk.rows = rows;
    chunk.cols = args.logits.cols;
    kernel(chunk);
  });
}

}  // namespace zerofleet::cpu
