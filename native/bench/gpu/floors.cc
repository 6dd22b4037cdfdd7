#include <cstddef>

#include "bench/device_machine.h"
#include "bench/gpu/json_line.h"
#include "bench/gpu/parts.h"
#include "bench/kernel_bench.h"
#include "core/device/buffer.h"
#include "core/device/transfer.h"
#include "kernels/gemm/gemm.h"

namespace zerofleet::bench {
namespace {

double copy_rate(const Context& ctx, const GpuBenchOptions& options) {
  const std::size_t num_bytes = options.tiny ? std::size_t{1} << 20 : std::size_t{1} << 31;
  Buffer from(ctx.device, num_bytes), to(ctx.device, num_bytes);
  const auto seconds = seconds_of_runs(
      ctx, {[&] { copy_bytes(ctx, {to.data(), num_bytes}, {from.data(), num_bytes}); }}, options.patience);
  const double rate = 2.0 * static_cast<double>(num_bytes) / median(seconds);
  JsonLine("copy").add("bytes", num_bytes).add("bytes_per_second", rate).add("seconds", seconds).print();
  return rate;
}

double matrix_rate(const Context& ctx, const GpuBenchOptions& options) {
  const std::int64_t n = options.tiny ? 64 : 8192;
  const ModelConfig& model = options.trainings.front().model;  // of no meaning here
  KernelBench bench(ctx, model, {1, 1}, DType::kBF16);
  const Matrix a = bench.random(n, n, DType::kBF16, Tensor::Rows::kContiguous), c = bench.random(n, n);
  PackedMatrix& b = bench.keep(PackedMatrix(ctx, DType::kBF16, n, n));
  const PackRequest request{bench.random(n, n, DType::kBF16, Tensor::Rows::kContiguous), SourceRows::kAlongK, &b};
  pack(ctx, {&request, 1});
  const GemmProblem problem{a, &b, c};
  const auto seconds = seconds_of_runs(ctx, {[&] { gemm(ctx, bench.scratch, {&problem, 1}); }}, options.patience);
  const double rate = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n) / median(seconds);
  JsonLine("matmul")
      .add("n", n)
      .add("dtype", "bf16")
      .add("operations_per_second", rate)
      .add("seconds", seconds)
      .add("mean_magnitude", mean_magnitude(ctx, {c}))
      .print();
  return rate;
}

}  // namespace

Floors measure_floors(const GpuBenchOptions& options) {
  DeviceMachine machine(options.device);
  return {copy_rate(machine.ctx, options), matrix_rate(machine.ctx, options)};
}

}  // namespace zerofleet::bench
