#include "kernels/cpu/simd/gemm.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/cpu/isa_dispatch.h"
#include "kernels/cpu/launch.h"
#include "kernels/cpu/simd/convert.h"
#include "kernels/cpu/simd/pack.h"

// A task computes one block of C with all of k: kBlockRows × kBlockCols, in passes over at most kMaxSteps words of k.
// Its rows of A stay in the core's own cache while the panels of B pass by. Where A cannot be read in place, each pass
// first copies its part of it, or for a transposed A packs it, into the worker's scratch memory.
namespace zerofleet::cpu {
namespace {

constexpr std::int64_t kBlockRows = 64;
constexpr std::int64_t kBlockCols = 512;
constexpr std::int64_t kWideBlockCols = 4096;  // for a transposed A at most, so that its packing pays for more columns
constexpr std::int64_t kPackingCols = 32;
constexpr std::int64_t kMaxSteps = 1024;       // words of k per pass, so that a panel of B is at most 128 KiB

struct Task {
  const GemmProblem* problem;
  std::int64_t row, rows, col, cols;
};

struct Kernels {
  decltype(&isa_generic::gemm_block) block;
  decltype(&isa_generic::pack_k_rows) pack_k_rows;
  decltype(&isa_generic::copy_words) copy_words;
  decltype(&isa_generic::convert_rows) convert_rows;
};

/// Columns of a task of `problem`. How C is cut does not change its bits, so this may look at the number of workers: it
/// takes the width that gives the busiest of them the least to do, when packing A costs as much as kPackingCols columns.
std::int64_t task_cols(const GemmProblem& problem, std::int64_t workers) {
  // Sums that go through scratch memory must fit there.
  if (!problem.a_transposed || problem.c.dtype != DType::kF32) return kBlockCols;
  const std::int64_t rows = (problem.c.rows + kBlockRows - 1) / kBlockRows;
  std::int64_t best = 0, least = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t cols = kWideBlockCols; cols >= kBlockCols; cols /= 2) {
    const std::int64_t tasks = rows * ((problem.c.cols + cols - 1) / cols);
    const std::int64_t work = (tasks + workers - 1) / workers * (std::min(cols, problem.c.cols) + kPackingCols);
    if (work < least) {
      least = work;
      best = cols;
    }
  }
  return best;
}

std::vector<Task> tasks_of(std::span<const GemmProblem> problems, std::int64_t workers) {
  std::vector<Task> tasks;
  for (const GemmProblem& problem : problems) {
    const std::int64_t wide = task_cols(problem, workers);
    for (std::int64_t col = 0; col < problem.c.cols; col += wide) {
      for (std::int64_t row = 0; row < problem.c.rows; row += kBlockRows) {
        tasks.push_back(
            {&problem, row, std::min(kBlockRows, problem.c.rows - row), col, std::min(wide, problem.c.cols - col)});
      }
    }
  }
  return tasks;
}

/// True if the rows of A can be read as words where they are.
bool reads_in_place(const GemmProblem& problem) {
  const bool pairs = problem.b->pairs();
  if (problem.a_transposed || problem.a.dtype != problem.b->word_dtype()) return false;
  if (reinterpret_cast<std::uintptr_t>(problem.a.data) % sizeof(std::uint32_t) != 0) return false;
  if (pairs && (problem.a.cols % 2 != 0 || problem.a.stride % 2 != 0)) return false;
  // Rows a multiple of 4 KiB apart fall into the same set of the first-level cache and push each other out.
  return problem.a.stride * static_cast<std::int64_t>(size_of(problem.a.dtype)) % 4096 != 0;
}

/// Row stride of a copied A, in words: whole cache lines, an odd number of them.
std::int64_t copied_stride(std::int64_t steps) { return (steps + 15) / 16 / 2 * 32 + 16; }

/// 405,504 bytes for any shape.
struct Areas {
  explicit Areas(Carver& carver)
      : a(carver.take<std::uint32_t>(kBlockRows * (copied_stride(kMaxSteps) + 32))),
        c(carver.take<float>(kBlockRows * kBlockCols)) {}
  std::uint32_t* a;
  float* c;
};

/// Sets block's A to the words [step, step + block.steps) of the task's rows.
void place_a(const Kernels& kernels, const Task& task, std::int64_t step, std::uint32_t* area, GemmBlock& block) {
  const GemmProblem& problem = *task.problem;
  const std::int64_t per_word = problem.b->pairs() ? 2 : 1;
  if (reads_in_place(problem)) {
    block.a = static_cast<const std::uint32_t*>(problem.a.at(task.row, 0)) + step;
    block.a_row_stride = problem.a.stride / per_word;
    block.a_step_stride = 1;
    block.a_group_stride = kPanel * block.a_row_stride;
    return;
  }
  const std::int64_t k = step * per_word, count = std::min(block.steps * per_word, problem.b->k() - k);
  PackArgs args;
  args.source_stride = problem.a.stride;
  args.source_dtype = problem.a.dtype;
  args.target = area;
  args.pairs = problem.b->pairs();
  block.a = area;
  if (problem.a_transposed) {
    args.source = problem.a.at(k, task.row);
    args.rows = count;
    args.cols = task.rows;
    args.target_stride = block.steps * kPanel;
    kernels.pack_k_rows(args);
    block.a_row_stride = 1;
    block.a_step_stride = kPanel;
    block.a_group_stride = args.target_stride;
  } else {
    args.source = problem.a.at(task.row, k);
    args.rows = task.rows;
    args.cols = count;
    args.target_stride = copied_stride(block.steps);
    kernels.copy_words(args);
    block.a_row_stride = args.target_stride;
    block.a_step_stride = 1;
    block.a_group_stride = kPanel * block.a_row_stride;
  }
}

void run_task(const Kernels& kernels, const Task& task, const Areas& areas) {
  const GemmProblem& problem = *task.problem;
  const PackedMatrix& b = *problem.b;
  GemmBlock block;
  block.b = b.words() + task.col / kPanel * b.panel_stride();
  block.b_panel_stride = b.panel_stride();
  block.rows = task.rows;
  block.cols = task.cols;
  block.pairs = b.pairs();
  // A long k is summed in several passes, which hand the sums on in fp32.
  const bool through_scratch = problem.c.dtype != DType::kF32 && b.steps() > kMaxSteps;
  block.c = through_scratch ? areas.c : problem.c.at(task.row, task.col);
  block.c_stride = through_scratch ? task.cols : problem.c.stride;
  block.c_dtype = through_scratch ? DType::kF32 : problem.c.dtype;
  block.accumulate = problem.accumulate;
  for (std::int64_t step = 0; step < b.steps(); step += kMaxSteps) {
    block.steps = std::min(kMaxSteps, b.steps() - step);
    if (problem.bias != nullptr && step + block.steps == b.steps()) {
      const ConstMatrix bias{problem.bias, problem.c.dtype, 1, problem.c.cols, problem.c.cols};
      block.bias = bias.at(0, task.col);
      block.bias_dtype = bias.dtype;
    }
    place_a(kernels, task, step, areas.a, block);
    kernels.block(block);
    block.accumulate = true;
    block.b += block.steps * kPanel;
  }
  if (through_scratch) {
    kernels.convert_rows({areas.c, task.cols, problem.c.at(task.row, task.col), problem.c.stride, task.rows, task.cols,
                          problem.c.dtype});
  }
}

}  // namespace

void gemm(const Context& ctx, Scratch& scratch, std::span<const GemmProblem> problems) {
  const Kernels kernels{ZF_PICK_KERNEL(ctx.cpu_isa, gemm_block), ZF_PICK_KERNEL(ctx.cpu_isa, pack_k_rows),
                        ZF_PICK_KERNEL(ctx.cpu_isa, copy_words), ZF_PICK_KERNEL(ctx.cpu_isa, convert_rows)};
  Carver measure;
  Areas{measure};
  scratch.reserve(measure.used());
  const std::vector<Task> tasks = tasks_of(problems, ctx.pool->num_threads());
  ctx.pool->parallel_for(static_cast<std::int64_t>(tasks.size()), [&](std::int64_t index, int worker) {
    Carver carver(scratch.of(worker));
    run_task(kernels, tasks[static_cast<std::size_t>(index)], Areas(carver));
  });
}

}  // namespace zerofleet::cpu
