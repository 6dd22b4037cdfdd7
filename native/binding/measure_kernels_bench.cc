#include "binding/measure_kernels_bench.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/philox.h"
#include "kernels/cast.h"

namespace zerofleet::binding {
namespace {

constexpr std::int64_t kPeriod = 262'139;  // a prime, so that rows differ

/// One period of random values in `dtype`.
std::vector<std::byte> random_period(const Context& ctx, std::int64_t numel, DType dtype, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(numel));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(2.0 * uniform_open(philox(seed, {static_cast<std::uint32_t>(i), 0, 0, 0})[0]) - 1.0);
  }
  std::vector<std::byte> bytes(values.size() * size_of(dtype));
  cast_from_f32(ctx, values, dtype, bytes);
  return bytes;
}

/// Fills `target` with what follows `begin` in a sequence of such periods.
void fill_periodic(std::span<std::byte> target, std::span<const std::byte> period, std::size_t begin) {
  std::size_t at = begin % period.size();
  while (!target.empty()) {
    const std::size_t count = std::min(target.size(), period.size() - at);
    std::memcpy(target.data(), period.data() + at, count);
    target = target.subspan(count);
    at = 0;
  }
}

}  // namespace

KernelBench::KernelBench(const Context& bench_ctx, const ModelConfig& model_config, const PassShape& pass_shape,
                         DType compute_dtype)
    : ctx(bench_ctx), config(model_config), shape(pass_shape), dtype(compute_dtype), scratch(bench_ctx) {}

ModelContext KernelBench::model_context() {
  const WeightLayout layout = config.naming == ParamNaming::kGpt2 ? WeightLayout::kInOut : WeightLayout::kOutIn;
  return {ctx, config, dtype, &scratch, nullptr, layout};
}

Matrix KernelBench::random(std::int64_t num_rows, std::int64_t cols, DType of, Tensor::Rows spacing) {
  const Matrix& matrix = keep(Tensor(ctx, of, num_rows, cols, spacing)).view();
  const std::int64_t numel = std::min(num_rows * cols, kPeriod);
  const std::vector<std::byte> period = random_period(ctx, numel, of, kept_.size());
  const auto row_bytes = static_cast<std::size_t>(cols) * size_of(of);
  for (std::int64_t row = 0; row < num_rows; ++row) {
    fill_periodic({static_cast<std::byte*>(matrix.at(row, 0)), row_bytes}, period,
                  static_cast<std::size_t>(row) * row_bytes);
  }
  return matrix;
}

std::span<float> KernelBench::random_floats(std::int64_t numel) {
  const Matrix row = random(1, numel, DType::kF32, Tensor::Rows::kContiguous);
  return {static_cast<float*>(row.data), static_cast<std::size_t>(numel)};
}

std::span<const std::int32_t> KernelBench::random_below(std::int64_t count, std::int64_t limit) {
  auto& values = keep(std::vector<std::int32_t>(static_cast<std::size_t>(count)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t bits = philox(kept_.size(), {static_cast<std::uint32_t>(i), 1, 0, 0})[0];
    values[i] = static_cast<std::int32_t>(bits % static_cast<std::uint32_t>(limit));
  }
  return values;
}

const PackedMatrix* KernelBench::random_packed(std::int64_t k, std::int64_t n) {
  PackedMatrix& packed = keep(PackedMatrix(ctx, dtype, k, n));
  const PackRequest request[] = {{random(k, n), SourceRows::kAlongK, &packed}};
  pack(ctx, request);
  return &packed;
}

std::string shape_text(std::initializer_list<std::int64_t> sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += (text.empty() ? "" : " × ") + std::to_string(size);
  return text;
}

Matrix as_row(std::span<float> values) {
  const auto numel = static_cast<std::int64_t>(values.size());
  return {values.data(), DType::kF32, 1, numel, numel};
}

double mean_magnitude(const std::vector<ConstMatrix>& matrices) {
  ThreadPool pool(1);
  const Context plain{Device{}, &pool, CpuIsa::kGeneric};
  double sum = 0, count = 0;
  for (const ConstMatrix& matrix : matrices) {
    std::vector<float> values(static_cast<std::size_t>(matrix.cols));
    for (std::int64_t row = 0; row < matrix.rows; ++row) {
      const auto* bytes = static_cast<const std::byte*>(matrix.at(row, 0));
      cast_to_f32(plain, {bytes, values.size() * size_of(matrix.dtype)}, matrix.dtype, values);
      for (const float value : values) sum += std::abs(static_cast<double>(value));
    }
    count += static_cast<double>(matrix.rows * matrix.cols);
  }
  return sum / count;
}

}  // namespace zerofleet::binding
