// Speed of quantized weights: quantization, restoration, and the products of an MLP's first layer, which restore their
// weights. The same products with unquantized weights are the reference.
#include "bench/kernel_bench.h"
#include "kernels/gemm/gemm.h"

namespace zerofleet::bench {
namespace {

/// A weight (intermediate, hidden) of the model, quantized; null where there are no operands.
QuantizedMatrix* random_quantized(KernelBench& bench, QuantFormat format) {
  const std::int64_t out = bench.config.intermediate_size, in = bench.config.hidden_size;
  if (!bench.has_operands()) return nullptr;
  QuantizedMatrix& matrix = bench.keep(QuantizedMatrix(bench.ctx.device, format, out, in));
  quantize(bench.ctx, bench.random(out, in), matrix);
  return &matrix;
}

KernelCase conversion(KernelBench& bench, QuantFormat format, bool restores) {
  const std::int64_t out = bench.config.intermediate_size, in = bench.config.hidden_size;
  const Matrix plain = bench.random(out, in);
  KernelCase made;
  made.shape = shape_text({out, in});
  made.bytes = static_cast<double>(quantized_bytes(format, out, in)) + bench.element() * static_cast<double>(out * in);
  made.results = {plain};
  QuantizedMatrix* matrix = random_quantized(bench, format);
  if (restores) {
    made.run = [&bench, plain, matrix] { dequantize(bench.ctx, *matrix, plain); };
  } else {
    made.run = [&bench, plain, matrix] { quantize(bench.ctx, plain, *matrix); };
  }
  return made;
}

/// y = x Wᵀ, or dx = dy W, with weights (out, in) as an operand makes them.
template <class AddWeight>
KernelCase product_with(KernelBench& bench, bool is_forward, double weight_bytes, const AddWeight& add_weight) {
  const std::int64_t rows = bench.rows(), out = bench.config.intermediate_size, in = bench.config.hidden_size;
  const Matrix a = bench.random(rows, is_forward ? in : out), c = bench.random(rows, is_forward ? out : in);
  SourceOperand& source = bench.keep(SourceOperand{{}, is_forward ? SourceRows::kAlongN : SourceRows::kAlongK});
  add_weight(source);
  KernelCase made;
  made.shape = shape_text({rows, a.cols, c.cols});
  made.operations = 2.0 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
  made.bytes = weight_bytes + bench.element() * static_cast<double>(rows * (in + out));
  made.results = {c};
  GemmProblem problem{a, nullptr, c};
  problem.source = &source;
  made.run = [&bench, problem] { gemm(bench.ctx, bench.scratch, {&problem, 1}); };
  return made;
}

KernelCase plain_product(KernelBench& bench, bool is_forward) {
  const Matrix weight = bench.random(bench.config.intermediate_size, bench.config.hidden_size);
  return product_with(bench, is_forward, bench.element() * static_cast<double>(weight.rows * weight.cols),
                      [&](SourceOperand& source) { source.parts = {weight}; });
}

KernelCase quantized_product(KernelBench& bench, QuantFormat format, bool is_forward) {
  const std::size_t bytes = quantized_bytes(format, bench.config.intermediate_size, bench.config.hidden_size);
  const QuantizedMatrix* weight = random_quantized(bench, format);
  return product_with(bench, is_forward, static_cast<double>(bytes), [&](SourceOperand& source) {
    if (weight != nullptr) source.add(*weight, bench.dtype);
  });
}

constexpr auto kNf4 = QuantFormat::kNf4;
constexpr auto kInt8 = QuantFormat::kInt8;

constexpr KernelEntry kQuantizedKernels[] = {
    {"quantize_nf4", [](KernelBench& bench) { return conversion(bench, kNf4, false); }},
    {"quantize_int8", [](KernelBench& bench) { return conversion(bench, kInt8, false); }},
    {"dequantize_nf4", [](KernelBench& bench) { return conversion(bench, kNf4, true); }},
    {"dequantize_int8", [](KernelBench& bench) { return conversion(bench, kInt8, true); }},
    {"mlp_in_in_place.forward", [](KernelBench& bench) { return plain_product(bench, true); }},
    {"mlp_in_in_place.dx", [](KernelBench& bench) { return plain_product(bench, false); }},
    {"mlp_in_nf4.forward", [](KernelBench& bench) { return quantized_product(bench, kNf4, true); }},
    {"mlp_in_nf4.dx", [](KernelBench& bench) { return quantized_product(bench, kNf4, false); }},
    {"mlp_in_int8.forward", [](KernelBench& bench) { return quantized_product(bench, kInt8, true); }},
    {"mlp_in_int8.dx", [](KernelBench& bench) { return quantized_product(bench, kInt8, false); }},
};

}  // namespace

std::span<const KernelEntry> quantized_kernels() { return kQuantizedKernels; }

}  // namespace zerofleet::bench
