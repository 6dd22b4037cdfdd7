// Operations of magnitudes, over the widest matrix of a layer and its outputs.
#include "bench/kernel_bench.h"
#include "kernels/adapter/magnitude.h"

namespace zerofleet::bench {
namespace {

constexpr std::int64_t kRank = 16;

KernelCase norms_case(KernelBench& bench, bool in_first) {
  const std::int64_t in = bench.config.hidden_size, out = bench.config.intermediate_size;
  constexpr auto kContiguous = Tensor::Rows::kContiguous;
  const AdaptedMatrix matrix{in_first ? bench.random(in, out) : bench.random(out, in), in_first,
                             bench.random(kRank, in, bench.dtype, kContiguous),
                             bench.random(out, kRank, bench.dtype, kContiguous), 0.5F};
  const std::span<float> norms = bench.random_floats(out);
  KernelCase made{shape_text({out, in})};
  made.operations = 2.0 * static_cast<double>(kRank * in * out);
  made.bytes = bench.element() * static_cast<double>(in * out + kRank * (in + out)) + 4.0 * static_cast<double>(out);
  made.run = [&bench, matrix, norms] { direction_norms(bench.ctx, {matrix, norms}); };
  made.results = {as_row(norms)};
  return made;
}

/// An operation that reads or writes so many matrices of a layer's widest outputs.
KernelCase over_outputs(KernelBench& bench, int num_matrices) {
  KernelCase made{shape_text({bench.rows(), bench.config.intermediate_size})};
  made.bytes = bench.element() * num_matrices * static_cast<double>(bench.rows() * bench.config.intermediate_size);
  return made;
}

KernelCase scale_case(KernelBench& bench) {
  const std::int64_t cols = bench.config.intermediate_size;
  const Matrix x = bench.random(bench.rows(), cols), y = bench.random(bench.rows(), cols);
  const std::span<float> factors = bench.random_floats(cols);
  KernelCase made = over_outputs(bench, 2);
  made.run = [&bench, x, y, factors] { scale_columns(bench.ctx, {x, factors, nullptr, y}); };
  made.results = {y};
  return made;
}

KernelCase gradient_case(KernelBench& bench) {
  const std::int64_t cols = bench.config.intermediate_size;
  const Matrix dy = bench.random(bench.rows(), cols), z = bench.random(bench.rows(), cols);
  const std::span<float> inverses = bench.random_floats(cols), gradient = bench.random_floats(cols);
  KernelCase made = over_outputs(bench, 2);
  made.run = [&bench, dy, z, inverses, gradient] { magnitude_gradient(bench.ctx, {dy, z, inverses, gradient}); };
  made.results = {as_row(gradient)};
  return made;
}

constexpr KernelEntry kAdapterKernels[] = {
    {"direction_norms", [](KernelBench& bench) { return norms_case(bench, false); }},
    {"direction_norms.in_first", [](KernelBench& bench) { return norms_case(bench, true); }},
    {"scale_columns", scale_case},
    {"magnitude_gradient", gradient_case},
};

}  // namespace

std::span<const KernelEntry> adapter_kernels() { return kAdapterKernels; }

}  // namespace zerofleet::bench
