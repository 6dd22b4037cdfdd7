#pragma once

#include <algorithm>
#include <cstdint>

#include "core/device/context.h"
#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/common/simd/convert.h"
#include "kernels/gemm/cpu/gemm_tasks.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/simd/codes.h"
#include "kernels/gemm/simd/gemm.h"
#include "kernels/gemm/simd/pack.h"
#include "kernels/quantize/simd/quantize.h"

// Blocks of C: what a task hands to the kernels. Part of gemm.cc.
namespace zerofleet::cpu {
namespace {

struct Kernels {
  decltype(&isa_generic::gemm_block) block;
  decltype(&isa_generic::pack_k_rows) pack_k_rows;
  decltype(&isa_generic::pack_k_cols) pack_k_cols;
  decltype(&isa_generic::copy_words) copy_words;
  decltype(&isa_generic::convert_rows) convert_rows;
  decltype(&isa_generic::unpack_rows) unpack_rows;
  decltype(&isa_generic::restore_codes) restore_codes;
  decltype(&isa_generic::multiply_codes) multiply_codes;
};

Kernels kernels_of(const Context& ctx) {
  return {ZF_PICK_KERNEL(ctx.cpu_isa, gemm_block),    ZF_PICK_KERNEL(ctx.cpu_isa, pack_k_rows),
          ZF_PICK_KERNEL(ctx.cpu_isa, pack_k_cols),   ZF_PICK_KERNEL(ctx.cpu_isa, copy_words),
          ZF_PICK_KERNEL(ctx.cpu_isa, convert_rows),  ZF_PICK_KERNEL(ctx.cpu_isa, unpack_rows),
          ZF_PICK_KERNEL(ctx.cpu_isa, restore_codes), ZF_PICK_KERNEL(ctx.cpu_isa, multiply_codes)};
}

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

}  // namespace
}  // namespace zerofleet::cpu
