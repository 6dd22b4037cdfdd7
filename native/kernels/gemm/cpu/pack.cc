#include "kernels/gemm/simd/pack.h"

#include <algorithm>
#include <span>
#include <vector>

#include "core/device/context.h"
#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/gemm/packed_matrix.h"
#include "kernels/gemm/simd/gemm.h"

namespace zerofleet::cpu {
namespace {

// A task packs a rectangle of the source. Sources whose rows are k are read in wide stripes; those whose rows are n by
// whole panels.
struct PackTask {
  const PackRequest* request;
  std::int64_t row, rows, col, cols;
};

constexpr std::int64_t kStripeCols = 8 * kPanel;
constexpr std::int64_t kStripeRows = 128;

std::vector<PackTask> tasks_of(std::span<const PackRequest> requests) {
  std::vector<PackTask> tasks;
  for (const PackRequest& request : requests) {
    const bool along_k = request.rows == SourceRows::kAlongK;
    const std::int64_t tall = along_k ? kStripeRows : 2 * kPanel;
    const std::int64_t wide = along_k ? kStripeCols : request.source.cols;
    for (std::int64_t col = 0; col < request.source.cols; col += wide) {
      for (std::int64_t row = 0; row < request.source.rows; row += tall) {
        tasks.push_back(
            {&request, row, std::min(tall, request.source.rows - row), col, std::min(wide, request.source.cols - col)});
      }
    }
  }
  return tasks;
}

}  // namespace

void pack(const Context& ctx, std::span<const PackRequest> requests) {
  const auto along_k = ZF_PICK_KERNEL(ctx.cpu_isa, pack_k_rows);
  const auto along_n = ZF_PICK_KERNEL(ctx.cpu_isa, pack_k_cols);
  const std::vector<PackTask> tasks = tasks_of(requests);
  ctx.pool->parallel_for(static_cast<std::int64_t>(tasks.size()), [&](std::int64_t index, int) {
    const PackTask& task = tasks[static_cast<std::size_t>(index)];
    const PackRequest& request = *task.request;
    PackedMatrix& target = *request.target;
    const bool k_rows = request.rows == SourceRows::kAlongK;
    const std::int64_t k = request.k_begin + (k_rows ? task.row : 0);
    const std::int64_t panel = (k_rows ? task.col : task.row) / kPanel;
    PackArgs args;
    args.source = request.source.at(task.row, task.col);
    args.source_stride = request.source.stride;
    args.rows = task.rows;
    args.cols = task.cols;
    args.target = target.words() + panel * target.panel_stride() + (target.pairs() ? k / 2 : k) * kPanel;
    args.target_stride = target.panel_stride();
    args.source_dtype = request.source.dtype;
    args.pairs = target.pairs();
    (k_rows ? along_k : along_n)(args);
  });
}

}  // namespace zerofleet::cpu
