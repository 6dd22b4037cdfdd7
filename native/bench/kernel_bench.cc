#include "bench/kernel_bench.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/cuda/cuda_runtime.h"
#include "core/device/buffer.h"
#include "core/device/transfer.h"
#include "core/error.h"
#include "core/philox.h"
#include "kernels/flat/cast.h"

namespace zerofleet::bench {
namespace {

constexpr std::int64_t kPeriod = 262'139;  // a prime, so that rows differ

/// Returns a period of random values in `dtype`, made on the host.
std::vector<std::byte> random_period(std::int64_t numel, DType dtype, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(numel));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(2.0 * uniform_open(philox(seed, {static_cast<std::uint32_t>(i), 0, 0, 0})[0]) - 1.0);
  }
  std::vector<std::byte> bytes(values.size() * size_of(dtype));
  ThreadPool pool(1);
  cast_from_f32({Device{}, &pool}, values, dtype, bytes);
  return bytes;
}

/// Fills `target` with the values from `begin` on in a sequence of such periods.
void fill_periodic(std::span<std::byte> target, std::span<const std::byte> period, std::size_t begin) {
  std::size_t at = begin % period.size();
  while (!target.empty()) {
    const std::size_t count = std::min(target.size(), period.size() - at);
    std::memcpy(target.data(), period.data() + at, count);
    target = target.subspan(count);
    at = 0;
  }
}

/// Returns a copy of a matrix on a CUDA device, rows with their gaps; empty for a matrix on the host.
std::vector<std::byte> copied(const Context& ctx, const ConstMatrix& matrix) {
  if (ctx.device.kind == DeviceKind::kCpu || !cuda::is_device_memory(matrix.data)) return {};
  const auto numel = static_cast<std::size_t>((matrix.rows - 1) * matrix.stride + matrix.cols);
  std::vector<std::byte> bytes(numel * size_of(matrix.dtype));
  copy_bytes(ctx, bytes, Device{}, {static_cast<const std::byte*>(matrix.data), bytes.size()}, ctx.device);
  return bytes;
}

/// More addresses than any operand has bytes. Whoever reads or writes there is stopped.
std::shared_ptr<std::byte> forbidden_addresses() {
  constexpr std::size_t kBytes = std::size_t{1} << 38;
  void* base = ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(base != MAP_FAILED, "out_of_memory", "there are no addresses for operands");
  return {static_cast<std::byte*>(base), [](std::byte* data) { ::munmap(data, kBytes); }};
}

}  // namespace

KernelBench::KernelBench(const Context& bench_ctx, const ModelConfig& model_config, const PassShape& pass_shape,
                         DType compute_dtype, Operands operands)
    : ctx(bench_ctx), config(model_config), shape(pass_shape), dtype(compute_dtype), scratch(bench_ctx) {
  if (operands == Operands::kSizesOnly) sizes_only_ = forbidden_addresses();
}

ModelContext KernelBench::model_context() {
  const WeightLayout layout = config.naming == "gpt2" ? WeightLayout::kInOut : WeightLayout::kOutIn;
  return {ctx, config, dtype, &scratch, nullptr, layout};
}

Matrix KernelBench::random(std::int64_t num_rows, std::int64_t cols, DType type, Tensor::Rows spacing) {
  if (!has_operands()) return {sizes_only_.get(), type, num_rows, cols, cols};
  const Matrix& matrix = keep(Tensor(ctx, type, num_rows, cols, spacing)).view();
  const std::int64_t numel = std::min(num_rows * cols, kPeriod);
  const std::vector<std::byte> period = random_period(numel, type, kept_.size());
  const auto row_bytes = static_cast<std::size_t>(cols) * size_of(type);
  const std::size_t stride_bytes = static_cast<std::size_t>(matrix.stride) * size_of(type);
  const std::span<std::byte> there(static_cast<std::byte*>(matrix.data),
                                   static_cast<std::size_t>(num_rows - 1) * stride_bytes + row_bytes);
  const bool is_here = ctx.device.kind == DeviceKind::kCpu;
  std::vector<std::byte> image(is_here ? 0 : there.size());
  const std::span<std::byte> here = is_here ? there : std::span(image);
  for (std::int64_t row = 0; row < num_rows; ++row) {
    const std::size_t begin = static_cast<std::size_t>(row);
    fill_periodic(here.subspan(begin * stride_bytes, row_bytes), period, begin * row_bytes);
  }
  if (!is_here) copy_bytes(ctx, there, ctx.device, here, Device{});
  return matrix;
}

std::span<float> KernelBench::random_floats(std::int64_t numel) {
  const Matrix row = random(1, numel, DType::kF32, Tensor::Rows::kContiguous);
  return {static_cast<float*>(row.data), static_cast<std::size_t>(numel)};
}

Indices KernelBench::random_below(std::int64_t count, std::int64_t limit) {
  auto& values = keep(std::vector<std::int32_t>(static_cast<std::size_t>(count)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t bits = philox(kept_.size(), {static_cast<std::uint32_t>(i), 1, 0, 0})[0];
    values[i] = static_cast<std::int32_t>(bits % static_cast<std::uint32_t>(limit));
  }
  if (ctx.device.kind == DeviceKind::kCpu) return values;
  Buffer& there = keep(Buffer(ctx.device, values.size() * sizeof(std::int32_t)));
  copy_bytes(ctx, {there.data(), there.num_bytes()}, ctx.device, std::as_bytes(std::span(values)), Device{});
  return {values, there.as<std::int32_t>().data()};
}

const PackedMatrix* KernelBench::random_packed(std::int64_t k, std::int64_t n) {
  PackedMatrix& packed = keep(PackedMatrix(ctx, dtype, k, n));
  const PackRequest request[] = {{random(k, n), SourceRows::kAlongK, &packed}};
  if (has_operands()) pack(ctx, request);
  return &packed;
}

std::vector<KernelEntry> all_kernels() {
  std::vector<KernelEntry> entries;
  for (const auto family : {product_kernels(), attention_kernels(), rowwise_kernels(), token_kernels(),
                            expert_kernels(), optimizer_kernels(), adapter_kernels(), quantized_kernels()}) {
    entries.insert(entries.end(), family.begin(), family.end());
  }
  return entries;
}

KernelEntry kernel_named(const std::string& op) {
  for (const KernelEntry& entry : all_kernels()) {
    if (op == entry.op) return entry;
  }
  throw Error("invalid_argument", "there is no operation '" + op + "'");
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

double mean_magnitude(const Context& ctx, const std::vector<ConstMatrix>& matrices) {
  synchronize(ctx);
  ThreadPool pool(1);
  const Context plain{Device{}, &pool};
  double sum = 0, count = 0;
  for (const ConstMatrix& matrix : matrices) {
    std::vector<float> values(static_cast<std::size_t>(matrix.cols));
    const std::vector<std::byte> copy = copied(ctx, matrix);
    const std::size_t stride = static_cast<std::size_t>(matrix.stride) * size_of(matrix.dtype);
    for (std::int64_t row = 0; row < matrix.rows; ++row) {
      const std::byte* bytes = copy.empty() ? static_cast<const std::byte*>(matrix.at(row, 0))
                                            : copy.data() + static_cast<std::size_t>(row) * stride;
      cast_to_f32(plain, {bytes, values.size() * size_of(matrix.dtype)}, matrix.dtype, values);
      for (const float value : values) sum += std::abs(static_cast<double>(value));
    }
    count += static_cast<double>(matrix.rows * matrix.cols);
  }
  return sum / count;
}

}  // namespace zerofleet::bench
