#include "kernels/gemm/simd/gemm.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/device/context.h"
#include "core/error.h"
#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/common/simd/convert.h"
#include "kernels/gemm/cpu/gemm_tasks.h"
#include "kernels/gemm/cpu/quantized_tiles.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/packed_matrix.h"
#include "kernels/gemm/simd/pack.h"

namespace zerofleet::cpu {
namespace {

struct Kernels {
  decltype(&isa_generic::gemm_block) block;
  decltype(&isa_generic::pack_k_rows) pack_k_rows;
  decltype(&isa_generic::pack_k_cols) pack_k_cols;
  decltype(&isa_generic::copy_words) copy_words;
  decltype(&isa_generic::convert_rows) convert_rows;
  decltype(&isa_generic::unpack_rows) unpack_rows;
};

/// True if the rows of A can be read as words where they are.
bool reads_in_place(const GemmProblem& problem, bool pairs) {
  if (problem.a_transposed || problem.a.dtype != (pairs ? DType::kBF16 : DType::kF32)) return false;
  if (reinterpret_cast<std::uintptr_t>(problem.a.data) % sizeof(std::uint32_t) != 0) return false;
  if (pairs && (problem.a.cols % 2 != 0 || problem.a.stride % 2 != 0)) return false;
  // Rows a multiple of 4 KiB apart fall into the same set of the first-level cache and push each other out.
  return problem.a.stride * static_cast<std::int64_t>(size_of(problem.a.dtype)) % 4096 != 0;
}

/// Row stride of a copied A, in words: whole cache lines, an odd number of them.
std::int64_t copied_stride(std::int64_t steps) { return (steps + 15) / 16 / 2 * 32 + 16; }

/// 1,454,080 bytes for any shape.
struct BlockAreas {
  explicit BlockAreas(Carver& carver)
      : a(carver.take<std::uint32_t>(kBlockRows * (copied_stride(kMaxSteps) + 32))),
        c(carver.take<float>(kBlockRows * kBlockCols)),
        source(carver.take<std::uint32_t>(kSourceWords)),
        sums(carver.take<float>(kMaxSumRows * kSourceCols)) {}
  std::uint32_t* a;
  float* c;
  std::uint32_t* source;  // the packed columns of one pass
  float* sums;            // of a source whose k takes several passes
};

/// Sets block's A to the words of [step, step + block.steps) of the task's rows.
void place_a(const Kernels& kernels, const Task& task, std::int64_t step, const OperandWords& words,
             std::uint32_t* area, GemmBlock& block) {
  const GemmProblem& problem = *task.problem;
  const std::int64_t per_word = words.a_pairs ? 2 : 1, num_words = block.steps * words.a_words();
  if (reads_in_place(problem, words.a_pairs)) {
    block.a = static_cast<const std::uint32_t*>(problem.a.at(task.row, 0)) + step;
    block.a_row_stride = problem.a.stride / per_word;
    block.a_step_stride = 1;
    block.a_group_stride = kPanel * block.a_row_stride;
    return;
  }
  const std::int64_t k = step * words.per_word(), count = std::min(block.steps * words.per_word(), words.k - k);
  PackArgs args;
  args.source_stride = problem.a.stride;
  args.source_dtype = problem.a.dtype;
  args.target = area;
  args.pairs = words.a_pairs;
  block.a = area;
  if (problem.a_transposed) {
    args.source = problem.a.at(k, task.row);
    args.rows = count;
    args.cols = task.rows;
    args.target_stride = num_words * kPanel;
    kernels.pack_k_rows(args);
    block.a_row_stride = 1;
    block.a_step_stride = kPanel;
    block.a_group_stride = args.target_stride;
  } else {
    args.source = problem.a.at(task.row, k);
    args.rows = task.rows;
    args.cols = count;
    args.target_stride = copied_stride(num_words);
    kernels.copy_words(args);
    block.a_row_stride = args.target_stride;
    block.a_step_stride = 1;
    block.a_group_stride = kPanel * block.a_row_stride;
  }
}

/// Packed columns of B.
struct ConstPanels {
  const std::uint32_t* words;
  std::int64_t stride;  // words from panel to panel
};

/// Destination of a block's sums, and their initial values.
struct Target {
  void* c;
  std::int64_t stride;
  DType dtype;
  bool accumulate;
  const void* bias;  // of the problem's C, from the block's first column on; null: none in this pass
  float alpha;       // 1 before the last pass
};

Target target_of(const Task& task) {
  const GemmProblem& problem = *task.problem;
  const ConstMatrix bias{problem.bias, problem.c.dtype, 1, problem.c.cols, problem.c.cols};
  return {problem.c.at(task.row, task.col),
          problem.c.stride,
          problem.c.dtype,
          problem.accumulate,
          problem.bias == nullptr ? nullptr : bias.at(0, task.col),
          problem.alpha};
}

/// Computes a block of C over some words of k. `b`: the task's columns, in panels of just these words or of more.
void run_block(const Kernels& kernels, const Task& task, const OperandWords& words, const Steps& pass,
               const ConstPanels& b, const Target& target, const BlockAreas& areas) {
  GemmBlock block;
  block.b = b.words;
  block.b_panel_stride = b.stride;
  block.rows = task.rows;
  block.cols = task.cols;
  block.pairs = words.pairs;
  block.widened = words.pairs != words.a_pairs;
  // A long k is summed in several parts, which hand the sums on in fp32.
  const bool through_scratch = target.dtype != DType::kF32 && pass.count > words.max_steps();
  block.c = through_scratch ? areas.c : target.c;
  block.c_stride = through_scratch ? task.cols : target.stride;
  block.c_dtype = through_scratch ? DType::kF32 : target.dtype;
  block.accumulate = target.accumulate;
  block.bias_dtype = task.problem->c.dtype;
  for (std::int64_t step = 0; step < pass.count; step += words.max_steps()) {
    block.steps = std::min(words.max_steps(), pass.count - step);
    if (step + block.steps == pass.count) {
      block.bias = target.bias;
      block.alpha = target.alpha;
    }
    place_a(kernels, task, pass.begin + step, words, areas.a, block);
    kernels.block(block);
    block.accumulate = true;
    block.b += block.steps * kPanel;
  }
  if (through_scratch) {
    kernels.convert_rows({areas.c, task.cols, target.c, target.stride, task.rows, task.cols, target.dtype});
  }
}

/// Packs the task's columns of the words of a pass, which may lie in several parts of the source. Quantized parts are
/// unpacked in the area of A, which is free meanwhile.
void pack_source(const Kernels& kernels, const Task& task, const OperandWords& words, const Steps& pass,
                 const BlockAreas& areas) {
  const SourceOperand& source = *task.problem->source;
  const bool along_k = source.rows == SourceRows::kAlongK;
  const std::int64_t begin = pass.begin * words.per_word(), end = begin + pass.count * words.per_word();
  std::int64_t part_begin = 0;
  for (const ConstMatrix& part : source.parts) {
    const std::int64_t part_k = along_k ? part.rows : part.cols;
    const std::int64_t first = std::max(begin, part_begin), last = std::min(end, part_begin + part_k);
    const std::int64_t inside = first - part_begin;
    part_begin += part_k;
    if (first >= last) continue;
    PackArgs args;
    args.source_stride = part.stride;
    args.source_dtype = part.dtype;
    args.rows = along_k ? last - first : task.cols;
    args.cols = along_k ? task.cols : last - first;
    args.target = areas.source + (first - begin) / words.per_word() * kPanel;
    args.target_stride = pass.count * kPanel;
    args.pairs = words.pairs;
    const std::int64_t row = along_k ? inside : task.col, col = along_k ? task.col : inside;
    const auto pack_part = along_k ? kernels.pack_k_rows : kernels.pack_k_cols;
    if (!source.quantized.empty()) {
      const QuantizedMatrix& matrix = *source.quantized[static_cast<std::size_t>(&part - source.parts.data())];
      pack_quantized({matrix.blocks(), source.rows, row, col, areas.a}, kernels.unpack_rows, pack_part, args);
      continue;
    }
    args.source = part.at(row, col);
    pack_part(args);
  }
}

void run_source_task(const Kernels& kernels, const Task& task, const OperandWords& words, const BlockAreas& areas) {
  const std::int64_t steps = words.steps(), stride = source_steps(steps);
  const bool through_sums = stride < steps && task.problem->c.dtype != DType::kF32;
  Target whole = target_of(task);
  if (through_sums) whole = {areas.sums, task.cols, DType::kF32, false, whole.bias, whole.alpha};
  for (std::int64_t begin = 0; begin < steps; begin += stride) {
    const Steps pass{begin, std::min(stride, steps - begin)};
    const bool is_last = begin + pass.count == steps;
    pack_source(kernels, task, words, pass, areas);
    Task block = task;
    for (; block.row < task.row + task.rows; block.row += kBlockRows) {
      block.rows = std::min(kBlockRows, task.row + task.rows - block.row);
      Target target = whole;
      const auto offset = static_cast<std::size_t>((block.row - task.row) * whole.stride) * size_of(whole.dtype);
      target.c = static_cast<std::byte*>(whole.c) + offset;
      target.accumulate = whole.accumulate || begin > 0;
      if (!is_last) {
        target.bias = nullptr;
        target.alpha = 1;
      }
      run_block(kernels, block, words, pass, {areas.source, pass.count * kPanel}, target, areas);
    }
  }
  if (!through_sums) return;
  const Target c = target_of(task);
  kernels.convert_rows({areas.sums, task.cols, c.c, c.stride, task.rows, task.cols, c.dtype});
}

void run_task(const Kernels& kernels, const Task& task, const OperandWords& words, const BlockAreas& areas) {
  const PackedMatrix* b = task.problem->b;
  if (b == nullptr) return run_source_task(kernels, task, words, areas);
  const ConstPanels panels{b->words() + task.col / kPanel * b->panel_stride(), b->panel_stride()};
  run_block(kernels, task, words, {0, words.steps()}, panels, target_of(task), areas);
}

}  // namespace

void gemm(const Context& ctx, Scratch& scratch, std::span<const GemmProblem> problems) {
  for (const GemmProblem& problem : problems) {
    require(problem.row_range == nullptr, "invalid_argument", "gemm: a CPU knows how many rows there are");
  }
  const Kernels kernels{ZF_PICK_KERNEL(ctx.cpu_isa, gemm_block),   ZF_PICK_KERNEL(ctx.cpu_isa, pack_k_rows),
                        ZF_PICK_KERNEL(ctx.cpu_isa, pack_k_cols),  ZF_PICK_KERNEL(ctx.cpu_isa, copy_words),
                        ZF_PICK_KERNEL(ctx.cpu_isa, convert_rows), ZF_PICK_KERNEL(ctx.cpu_isa, unpack_rows)};
  const std::vector<Task> tasks = tasks_of(ctx, problems);
  Carver measure;
  BlockAreas{measure};
  scratch.reserve(measure.used());
  ctx.pool->parallel_for(static_cast<std::int64_t>(tasks.size()), [&](std::int64_t index, int worker) {
    const Task& task = tasks[static_cast<std::size_t>(index)];
    Carver carver(scratch.area(worker));
    run_task(kernels, task, words_of(ctx, *task.problem), BlockAreas(carver));
  });
}

}  // namespace zerofleet::cpu
