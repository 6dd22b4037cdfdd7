// Operations that pass over the rows of activations once: norms with the residual addition, the MLP's functions,
// dropout, the gradient of a bias, and packing of operands.
#include "bench/kernel_bench.h"
#include "kernels/elementwise/bias.h"
#include "kernels/elementwise/dropout.h"
#include "kernels/elementwise/gelu.h"
#include "kernels/elementwise/glu.h"
#include "kernels/norm/layernorm.h"
#include "kernels/norm/rmsnorm.h"

namespace zerofleet::bench {
namespace {

/// A case whose bytes are `passes` times a (M, cols) matrix.
KernelCase case_over(const KernelBench& bench, std::int64_t cols, int passes, std::function<void()> run,
                     std::vector<ConstMatrix> results) {
  KernelCase made{shape_text({bench.rows(), cols})};
  made.bytes = bench.element() * passes * static_cast<double>(bench.rows() * cols);
  made.run = std::move(run);
  made.results = std::move(results);
  return made;
}

Matrix stream(KernelBench& bench) { return bench.random(bench.rows(), bench.config.hidden_size); }
const void* vector_of(KernelBench& bench) { return bench.random(1, bench.config.hidden_size).data; }
std::span<float> per_row(KernelBench& bench) { return bench.random_floats(bench.rows()); }
std::span<float> per_column(KernelBench& bench) { return bench.random_floats(bench.config.hidden_size); }

// Reads x and its addend, writes the sum and its norm.
KernelCase rmsnorm_forward(KernelBench& bench) {
  const RmsNormForward args{stream(bench), stream(bench), stream(bench), vector_of(bench),
                            1e-5,          stream(bench), per_row(bench)};
  return case_over(bench, bench.config.hidden_size, 4, [&bench, args] { rmsnorm(bench.ctx, args); },
                   {args.sum, args.y});
}

// Reads dy, x and the stream's gradient, to which it adds in place.
KernelCase rmsnorm_back(KernelBench& bench) {
  const Matrix dx = stream(bench);
  const RmsNormBackward args{stream(bench), stream(bench), vector_of(bench), per_row(bench), dx, dx, per_column(bench)};
  return case_over(bench, bench.config.hidden_size, 4, [&bench, args] { rmsnorm_backward(bench.ctx, args); },
                   {args.dx, as_row(args.dweight)});
}

KernelCase layernorm_forward(KernelBench& bench) {
  const LayerNormForward args{stream(bench), stream(bench), stream(bench),  vector_of(bench), vector_of(bench),
                              1e-5,          stream(bench), per_row(bench), per_row(bench)};
  return case_over(bench, bench.config.hidden_size, 4, [&bench, args] { layernorm(bench.ctx, args); },
                   {args.sum, args.y});
}

KernelCase layernorm_back(KernelBench& bench) {
  const Matrix dx = stream(bench);
  const LayerNormBackward args{
      stream(bench),     stream(bench),    vector_of(bench), per_row(bench), per_row(bench), dx, dx,
      per_column(bench), per_column(bench)};
  return case_over(bench, bench.config.hidden_size, 4, [&bench, args] { layernorm_backward(bench.ctx, args); },
                   {args.dx, as_row(args.dweight), as_row(args.dbias)});
}

Matrix inner(KernelBench& bench, std::int64_t width = 1) {
  return bench.random(bench.rows(), width * bench.config.intermediate_size);
}

KernelCase swiglu_forward(KernelBench& bench) {
  const Matrix gate_up = inner(bench, 2), act = inner(bench);
  return case_over(bench, act.cols, 3, [&bench, gate_up, act] { glu(bench.ctx, GluKind::kSilu, gate_up, act); }, {act});
}

KernelCase swiglu_back(KernelBench& bench) {
  const Matrix gate_up = inner(bench, 2), dact = inner(bench), dgate_up = inner(bench, 2);
  return case_over(
      bench, dact.cols, 5,
      [&bench, gate_up, dact, dgate_up] { glu_backward(bench.ctx, GluKind::kSilu, gate_up, dact, dgate_up); },
      {dgate_up});
}

template <GeluKind kKind>
KernelCase gelu_forward(KernelBench& bench) {
  const Matrix x = inner(bench), y = inner(bench);
  return case_over(bench, x.cols, 2, [&bench, x, y] { gelu(bench.ctx, kKind, x, y); }, {y});
}

template <GeluKind kKind>
KernelCase gelu_back(KernelBench& bench) {
  const Matrix x = inner(bench), dy = inner(bench), dx = inner(bench);
  return case_over(bench, x.cols, 3, [&bench, x, dy, dx] { gelu_backward(bench.ctx, kKind, x, dy, dx); }, {dx});
}

KernelCase dropout_case(KernelBench& bench) {
  const Matrix x = stream(bench), y = stream(bench);
  return case_over(bench, x.cols, 2, [&bench, x, y] { dropout(bench.ctx, {1, 2, 3, 4}, 0.1, x, y); }, {y});
}

KernelCase bias_case(KernelBench& bench) {
  const Matrix dy = inner(bench);
  const std::span<float> dbias = bench.random_floats(dy.cols);
  return case_over(bench, dy.cols, 1, [&bench, dy, dbias] { bias_gradient(bench.ctx, dy, dbias); }, {as_row(dbias)});
}

/// The words of an operand, of the type that they have on this path.
ConstMatrix words_of(const PackedMatrix& packed) {
  const auto numel = static_cast<std::int64_t>(packed.num_bytes() / size_of(packed.word_dtype()));
  return {packed.words(), packed.word_dtype(), 1, numel, numel};
}

KernelCase packing(KernelBench& bench, const Matrix& source, SourceRows rows) {
  const bool along_k = rows == SourceRows::kAlongK;
  PackedMatrix& packed = bench.keep(
      PackedMatrix(bench.ctx, bench.dtype, along_k ? source.rows : source.cols, along_k ? source.cols : source.rows));
  KernelCase made{shape_text({source.rows, source.cols})};
  made.bytes =
      bench.element() * static_cast<double>(source.rows * source.cols) + static_cast<double>(packed.num_bytes());
  made.run = [&bench, &packed, source, rows] {
    const PackRequest request[] = {{source, rows, &packed}};
    pack(bench.ctx, request);
  };
  made.results = {words_of(packed)};
  return made;
}

// A layer's widest activation, for the gradient of the weights; and its largest matrix, in both orders.
KernelCase pack_activation(KernelBench& bench) { return packing(bench, inner(bench), SourceRows::kAlongK); }

KernelCase pack_weight(KernelBench& bench, SourceRows rows) {
  return packing(bench, bench.random(bench.config.intermediate_size, bench.config.hidden_size), rows);
}

constexpr KernelEntry kRowwiseKernels[] = {
    {"rmsnorm.forward", rmsnorm_forward},
    {"rmsnorm.backward", rmsnorm_back},
    {"layernorm.forward", layernorm_forward},
    {"layernorm.backward", layernorm_back},
    {"swiglu.forward", swiglu_forward},
    {"swiglu.backward", swiglu_back},
    {"gelu.forward", gelu_forward<GeluKind::kExact>},
    {"gelu.backward", gelu_back<GeluKind::kExact>},
    {"gelu_tanh.forward", gelu_forward<GeluKind::kTanh>},
    {"gelu_tanh.backward", gelu_back<GeluKind::kTanh>},
    {"dropout", dropout_case},
    {"bias_gradient", bias_case},
    {"pack_activation", pack_activation},
    {"pack_weight.along_k", [](KernelBench& bench) { return pack_weight(bench, SourceRows::kAlongK); }},
    {"pack_weight.along_n", [](KernelBench& bench) { return pack_weight(bench, SourceRows::kAlongN); }},
};

}  // namespace

std::span<const KernelEntry> rowwise_kernels() { return kRowwiseKernels; }

}  // namespace zerofleet::bench
