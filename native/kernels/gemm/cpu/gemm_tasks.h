#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/device/context.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/packed_matrix.h"
#include "kernels/gemm/simd/gemm.h"

// Division of the CPU's products into tasks, and of their k into passes. Part of gemm.cc.
//
// A task computes one block of C, kBlockRows × kBlockCols, over all of k, in passes of at most kMaxSteps words. Its
// rows of A stay in the core's cache while the panels of B pass by. If A cannot be read in place, each pass first
// copies its part of A to the worker's scratch memory, or packs it there if A is transposed.
//
// With a source for B, a task has many rows and few columns. It packs the columns of a pass into its scratch memory.
// They stay in the core's cache while its rows pass by in blocks of kBlockRows.
namespace zerofleet::cpu {
namespace {

constexpr std::int64_t kBlockRows = 64;
constexpr std::int64_t kBlockCols = 512;
constexpr std::int64_t kWideBlockCols = 4096;  // limit for a transposed A; its packing serves more columns
constexpr std::int64_t kFewestCols = 64;       // if C has few rows, so that every worker reads a part of B
constexpr std::int64_t kPackingCols = 32;
constexpr std::int64_t kMaxSteps = 1024;           // words of k per pass; a panel of B has at most 128 KiB
constexpr std::int64_t kSourceWords = 128 * 1024;  // limit of what a task packs in one pass
constexpr std::int64_t kSourceCols = 128;
constexpr std::int64_t kMinSourceRows = 256;  // makes packing cheap relative to the product
constexpr std::int64_t kMaxSumRows = 1024;    // limit with a source whose k takes several passes
constexpr std::int64_t kTasksPerWorker = 3;
constexpr std::int64_t kCodeDepth = 256;  // k per pass over codes; a panel of restored words stays in the nearest cache

struct Task {
  const GemmProblem* problem;
  std::int64_t row, rows, col, cols;
};

/// Number of columns of a task. The division of C does not change its bits, so it may depend on the number of workers.
/// Chooses the width with the least work for the busiest worker, where packing A costs as much as kPackingCols columns.
std::int64_t task_cols(const GemmProblem& problem, std::int64_t workers) {
  const std::int64_t rows = (problem.c.rows + kBlockRows - 1) / kBlockRows;
  // Other sums pass through scratch memory, and must fit there.
  if (!problem.a_transposed || problem.c.dtype != DType::kF32) {
    std::int64_t cols = kBlockCols;
    while (cols > kFewestCols && rows * ((problem.c.cols + cols - 1) / cols) < kTasksPerWorker * workers) cols /= 2;
    return cols;
  }
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

/// Division of k into words of B, and whether A has the same words or, beside pairs, fp32.
struct OperandWords {
  bool pairs, a_pairs;
  std::int64_t k;
  std::int64_t per_word() const { return pairs ? 2 : 1; }
  std::int64_t steps() const { return (k + per_word() - 1) / per_word(); }
  std::int64_t a_words() const { return pairs == a_pairs ? 1 : 2; }  // for each of B
  /// Largest number of steps whose words of A fit into scratch memory.
  std::int64_t max_steps() const { return kMaxSteps / a_words(); }
};

/// Words of k from `begin` on.
struct Steps {
  std::int64_t begin, count;
};

OperandWords words_of(const Context& ctx, const GemmProblem& problem) {
  const bool a_pairs = packs_pairs(ctx, problem.a.dtype);
  if (problem.b != nullptr) return {problem.b->pairs(), a_pairs, problem.b->k()};
  return {a_pairs, a_pairs, problem.b_k()};
}

/// Number of words of k in one pass over a source: all, if one panel of them is small enough.
std::int64_t source_steps(std::int64_t steps) { return steps <= kSourceWords / kPanel ? steps : kMaxSteps; }

/// Number of columns of a task with a source.
std::int64_t source_cols(std::int64_t steps) {
  return std::min(kSourceCols, kSourceWords / source_steps(steps) / kPanel * kPanel);
}

/// Number of rows of a task with a source: all, or few enough to give every worker its share of tasks.
std::int64_t source_rows(const GemmProblem& problem, std::int64_t steps, std::int64_t workers) {
  const std::int64_t cols = source_cols(steps), across = (problem.c.cols + cols - 1) / cols;
  const std::int64_t most = source_steps(steps) < steps ? kMaxSumRows : problem.c.rows;
  const auto is_enough = [&](std::int64_t rows) {
    return rows <= most && across * ((problem.c.rows + rows - 1) / rows) >= kTasksPerWorker * workers;
  };
  std::int64_t rows = problem.c.rows;
  while ((rows > kMinSourceRows || rows > most) && !is_enough(rows)) rows = (rows + 1) / 2;
  return (rows + kBlockRows - 1) / kBlockRows * kBlockRows;
}

std::vector<Task> tasks_of(const Context& ctx, std::span<const GemmProblem> problems) {
  std::vector<Task> tasks;
  const std::int64_t workers = ctx.pool->num_threads();
  for (const GemmProblem& problem : problems) {
    const bool packed = problem.source == nullptr;
    const std::int64_t steps = words_of(ctx, problem).steps();
    const std::int64_t wide = packed ? task_cols(problem, workers) : source_cols(steps);
    const std::int64_t tall = packed ? kBlockRows : source_rows(problem, steps, workers);
    for (std::int64_t col = 0; col < problem.c.cols; col += wide) {
      for (std::int64_t row = 0; row < problem.c.rows; row += tall) {
        tasks.push_back(
            {&problem, row, std::min(tall, problem.c.rows - row), col, std::min(wide, problem.c.cols - col)});
      }
    }
  }
  return tasks;
}

}  // namespace
}  // namespace zerofleet::cpu
