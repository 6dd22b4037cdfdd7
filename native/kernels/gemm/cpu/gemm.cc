#include "kernels/gemm/simd/gemm.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/device/context.h"
#include "core/error.h"
#include "kernels/gemm/cpu/gemm_blocks.h"
#include "kernels/gemm/cpu/gemm_tasks.h"
#include "kernels/gemm/cpu/quantized_tiles.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/packed_matrix.h"

namespace zerofleet::cpu {
namespace {

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

/// Computes a task whose B is put into the area of sources for `stride` words of k at a time, by prepare(pass).
template <class Prepare>
void run_in_passes(const Kernels& kernels, const Task& task, const OperandWords& words, std::int64_t stride,
                   const BlockAreas& areas, const Prepare& prepare) {
  const std::int64_t steps = words.steps();
  const bool through_sums = stride < steps && task.problem->c.dtype != DType::kF32;
  Target whole = target_of(task);
  if (through_sums) whole = {areas.sums, task.cols, DType::kF32, false, whole.bias, whole.alpha};
  for (std::int64_t begin = 0; begin < steps; begin += stride) {
    const Steps pass{begin, std::min(stride, steps - begin)};
    const bool is_last = begin + pass.count == steps;
    prepare(pass);
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

void run_source_task(const Kernels& kernels, const Task& task, const OperandWords& words, const BlockAreas& areas) {
  run_in_passes(kernels, task, words, source_steps(words.steps()), areas,
                [&](const Steps& pass) { pack_source(kernels, task, words, pass, areas); });
}

RestoreArgs panel_of(const PackedCodes& codes) {
  return {nullptr, codes.format(), codes.rows() == SourceRows::kAlongK, codes.pairs(), codes.dtype(), codes.specials()};
}

/// The sums of a panel, which pass through scratch memory to C.
void multiply_panel(const Kernels& kernels, const Task& panel, const OperandWords& words, const BlockAreas& areas) {
  const PackedCodes& codes = *panel.problem->codes;
  CodeProduct product{panel_of(codes)};
  product.rows = panel.rows;
  product.sums = areas.sums;
  std::fill_n(product.sums, panel.rows * kPanel, 0.0F);
  GemmBlock block;
  for (std::int64_t step = 0; step < words.steps(); step += words.max_steps()) {
    block.steps = std::min(words.max_steps(), words.steps() - step);
    place_a(kernels, panel, step, words, areas.a, block);
    product.a = block.a;
    product.a_row_stride = block.a_row_stride;
    product.panel.block = codes.block(panel.col / kPanel, step * words.per_word() / kQuantBlock);
    product.panel.num_rows = block.steps * words.per_word();
    kernels.multiply_codes(product);
  }
  const Target c = target_of(panel);
  block.b = areas.source;  // of no step
  block.c = product.sums;
  block.c_stride = kPanel;
  block.rows = panel.rows;
  block.cols = panel.cols;
  block.steps = 0;
  block.accumulate = true;
  block.alpha = c.alpha;
  block.bias = c.bias;
  block.bias_dtype = c.dtype;
  kernels.block(block);
  kernels.convert_rows({product.sums, kPanel, c.c, c.stride, panel.rows, panel.cols, c.dtype});
}

/// Restores a panel of B at a time.
void run_codes_task(const Kernels& kernels, const Task& task, const OperandWords& words, const BlockAreas& areas) {
  const PackedCodes& codes = *task.problem->codes;
  RestoreArgs args = panel_of(codes);
  const bool in_registers = task.rows <= kCodeProductRows && !args.scales_of_k && !args.specials;
  args.target = areas.source;
  Task panel = task;
  for (std::int64_t end = task.col + task.cols; panel.col < end; panel.col += kPanel) {
    panel.cols = std::min(kPanel, end - panel.col);
    if (in_registers) {
      multiply_panel(kernels, panel, words, areas);
      continue;
    }
    run_in_passes(kernels, panel, words, kCodeDepth / words.per_word(), areas, [&](const Steps& pass) {
      args.block = codes.block(panel.col / kPanel, pass.begin * words.per_word() / kQuantBlock);
      args.num_rows = pass.count * words.per_word();
      kernels.restore_codes(args);
    });
  }
}

void run_task(const Kernels& kernels, const Task& task, const OperandWords& words, const BlockAreas& areas) {
  if (task.problem->source != nullptr) return run_source_task(kernels, task, words, areas);
  if (task.problem->codes != nullptr) return run_codes_task(kernels, task, words, areas);
  const PackedMatrix* b = task.problem->b;
  const ConstPanels panels{b->words() + task.col / kPanel * b->panel_stride(), b->panel_stride()};
  run_block(kernels, task, words, {0, words.steps()}, panels, target_of(task), areas);
}

}  // namespace

void gemm(const Context& ctx, Scratch& scratch, std::span<const GemmProblem> problems) {
  for (const GemmProblem& problem : problems) {
    require(problem.row_range == nullptr, "invalid_argument", "gemm: a CPU knows how many rows there are");
  }
  const Kernels kernels = kernels_of(ctx);
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
