// From finished gradients to new weights: casts, sums of pieces, norms, the optimizer; digests.
#include <algorithm>
#include <vector>

#include "bench/kernel_bench.h"
#include "bench/optimizer_run.h"
#include "kernels/flat/block_hash.h"
#include "kernels/flat/block_stats.h"
#include "kernels/flat/cast.h"
#include "kernels/flat/fold.h"
#include "model/transformer/transformer.h"

namespace zerofleet::bench {
namespace {

/// Elements of a layer's largest matrix, whole blocks of them.
std::int64_t matrix_numel(const KernelBench& bench) {
  return (bench.config.hidden_size * bench.config.intermediate_size + kBlockNumel - 1) / kBlockNumel * kBlockNumel;
}

/// All parameters, but no more than needed for a pass far beyond every cache.
std::int64_t model_numel(const KernelBench& bench) {
  constexpr std::int64_t kMaxNumel = std::int64_t{1} << 28;
  std::int64_t blocks = 0;
  for (const ParamSpec& spec : param_specs(bench.config)) blocks += num_blocks_of(spec.numel());
  return std::min(blocks * kBlockNumel, kMaxNumel);
}

std::span<std::byte> bytes_of(const Matrix& matrix) {
  return {static_cast<std::byte*>(matrix.data),
          static_cast<std::size_t>(matrix.rows * matrix.cols) * size_of(matrix.dtype)};
}

KernelCase case_over(std::int64_t numel, double bytes_each, std::function<void()> run,
                     std::vector<ConstMatrix> results) {
  KernelCase made{shape_text({numel})};
  made.bytes = bytes_each * static_cast<double>(numel);
  made.run = std::move(run);
  made.results = std::move(results);
  return made;
}

// Casts a gradient into a bucket.
KernelCase cast(KernelBench& bench) {
  const std::span<float> source = bench.random_floats(matrix_numel(bench));
  const Matrix target = bench.random(1, matrix_numel(bench), bench.dtype, Tensor::Rows::kContiguous);
  return case_over(matrix_numel(bench), 4 + bench.element(),
                   [&bench, source, target] { cast_from_f32(bench.ctx, source, bench.dtype, bytes_of(target)); },
                   {target});
}

KernelCase fold(KernelBench& bench) {
  const Matrix piece = bench.random(1, matrix_numel(bench), bench.dtype, Tensor::Rows::kContiguous);
  const Matrix sum = as_row(bench.random_floats(matrix_numel(bench)));
  KernelCase made = case_over(
      matrix_numel(bench), bench.element() + 8,
      [&bench, piece, sum] { fold_pieces(bench.ctx, {bytes_of(piece), bench.dtype, 1, bytes_of(sum), DType::kF32}); },
      {sum});
  made.in_place = true;
  return made;
}

// Every owned gradient of a step.
KernelCase grad_norm(KernelBench& bench) {
  const std::int64_t numel = model_numel(bench);
  const Matrix grads = as_row(bench.random_floats(numel));
  const auto num_blocks = static_cast<std::size_t>(numel / kBlockNumel);
  auto& sums = bench.keep(std::vector<double>(num_blocks));
  auto& largest = bench.keep(std::vector<float>(num_blocks));
  return case_over(numel, 4,
                   [&bench, grads, &sums, &largest] {
                     block_stats(bench.ctx, bytes_of(grads), DType::kF32, kBlockNumel, sums, largest);
                   },
                   {as_row(largest)});
}

// Runs a step over all parameters, which are written in bf16.
KernelCase adamw(KernelBench& bench) {
  const std::int64_t numel = model_numel(bench);
  auto& run = bench.keep(OptimizerRun(bench.ctx, OptimizerType::kAdamW, bench.has_operands() ? numel : kBlockNumel));
  KernelCase made =
      case_over(numel, static_cast<double>(run.bytes_per_param()), [&run] { run.step(); }, {as_row(run.master())});
  made.in_place = true;
  return made;
}

// The digest of a state.
KernelCase block_hash(KernelBench& bench) {
  const std::int64_t numel = model_numel(bench);
  const Matrix values = as_row(bench.random_floats(numel));
  auto& hashes = bench.keep(std::vector<Hash128>(static_cast<std::size_t>(numel / kBlockNumel)));
  return case_over(numel, 4, [&bench, values, &hashes] { hash_blocks(bench.ctx, bytes_of(values), 0, hashes); },
                   {values});
}

constexpr KernelEntry kOptimizerKernels[] = {
    {"cast", cast}, {"fold", fold}, {"grad_norm", grad_norm}, {"block_hash", block_hash}, {"adamw", adamw}};

}  // namespace

std::span<const KernelEntry> optimizer_kernels() { return kOptimizerKernels; }

}  // namespace zerofleet::bench
