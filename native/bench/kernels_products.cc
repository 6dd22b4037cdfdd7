// The matrix products of a layer's weights and of the head, with operands packed beforehand as the model has them.
#include <algorithm>
#include <numeric>
#include <vector>

#include "bench/kernel_bench.h"
#include "kernels/gemm/gemm.h"
#include "model/transformer/loss_head.h"

namespace zerofleet::bench {
namespace {

/// From `in` to the columns of one matrix, or of several side by side.
struct Product {
  std::int64_t rows;
  std::int64_t in;
  std::vector<std::int64_t> outs;
  bool in_first = false;  // how weights lie: (in, out)
  DType out_dtype;

  std::int64_t out() const { return std::accumulate(outs.begin(), outs.end(), std::int64_t{0}); }
};

Product product(const KernelBench& bench, std::int64_t in, std::vector<std::int64_t> outs) {
  return {bench.rows(), in, std::move(outs), bench.config.naming == "gpt2", bench.dtype};
}

Product qkv(const KernelBench& bench) {
  const ModelConfig& c = bench.config;
  if (c.naming == "gpt2") return product(bench, c.hidden_size, {c.qkv_size()});
  return product(bench, c.hidden_size, {c.query_size(), c.key_value_size(), c.key_value_size()});
}

Product attention_out(const KernelBench& bench) {
  return product(bench, bench.config.query_size(), {bench.config.hidden_size});
}

Product mlp_in(const KernelBench& bench) {
  const std::int64_t inner = bench.config.intermediate_size;
  if (bench.config.gated_mlp()) return product(bench, bench.config.hidden_size, {inner, inner});
  return product(bench, bench.config.hidden_size, {inner});
}

Product mlp_out(const KernelBench& bench) {
  return product(bench, bench.config.intermediate_size, {bench.config.hidden_size});
}

/// Product of a chunk of as many rows as have gradients of logits at once.
Product head(const KernelBench& bench) {
  const std::int64_t vocab = bench.config.vocab_size;
  const LogitRows rows = logit_rows(bench.ctx.device, vocab, bench.dtype, bench.rows());
  return {rows.gradients, bench.config.hidden_size, {vocab}, false, DType::kF32};
}

KernelCase case_of(KernelBench& bench, const Product& p, std::vector<GemmProblem> problems, double bytes) {
  const auto& kept = bench.keep(std::move(problems));
  KernelCase made;
  made.shape = shape_text({p.rows, p.in, p.out()});
  made.operations = 2.0 * static_cast<double>(p.rows) * static_cast<double>(p.in) * static_cast<double>(p.out());
  made.bytes = bytes;
  made.run = [&bench, &kept] { gemm(bench.ctx, bench.scratch, kept); };
  for (const GemmProblem& problem : kept) made.results.push_back(problem.c);
  return made;
}

double bytes_of(const KernelBench& bench, const Product& p, double x, double weight, double y) {
  const auto count = [](std::int64_t a, std::int64_t b) { return static_cast<double>(a) * static_cast<double>(b); };
  return bench.element() * x * count(p.rows, p.in) + weight * count(p.in, p.out()) + y * count(p.rows, p.out());
}

KernelCase forward(KernelBench& bench, const Product& p) {
  const Matrix x = bench.random(p.rows, p.in), y = bench.random(p.rows, p.out(), p.out_dtype);
  std::vector<GemmProblem> problems;
  std::int64_t begin = 0;
  for (const std::int64_t out : p.outs) {
    problems.push_back({x, bench.random_packed(p.in, out), y.columns(begin, out)});
    begin += out;
  }
  return case_of(bench, p, problems, bytes_of(bench, p, 1, bench.element(), static_cast<double>(size_of(p.out_dtype))));
}

KernelCase input_gradient(KernelBench& bench, const Product& p) {
  const Matrix dy = bench.random(p.rows, p.out()), dx = bench.random(p.rows, p.in);
  return case_of(bench, p, {{dy, bench.random_packed(p.out(), p.in), dx}},
                 bytes_of(bench, p, 1, bench.element(), bench.element()));
}

/// The columns of y a second time, as the input of GELU behind the product.
GemmEpilogue gelu_epilogue(KernelBench& bench, GemmEpilogue::Kind kind, const Matrix& y) {
  return {kind, GeluKind::kTanh, bench.random(y.rows, y.cols)};
}

/// The first product of an MLP as a model with GELU computes it: both input and output of GELU are written.
KernelCase forward_with_gelu(KernelBench& bench, const Product& p) {
  const Matrix x = bench.random(p.rows, p.in), y = bench.random(p.rows, p.out());
  GemmProblem problem{x, bench.random_packed(p.in, p.out()), y, false, false, bench.random(1, p.out()).data};
  problem.epilogue = gelu_epilogue(bench, GemmEpilogue::Kind::kGelu, y);
  KernelCase made = case_of(bench, p, {problem}, bytes_of(bench, p, 1, bench.element(), 2 * bench.element()));
  made.results.push_back(problem.epilogue.inner);
  return made;
}

/// The gradient of GELU's input, through the second product of an MLP.
KernelCase input_gradient_with_gelu(KernelBench& bench, const Product& p) {
  const Matrix dy = bench.random(p.rows, p.out()), dx = bench.random(p.rows, p.in);
  GemmProblem problem{dy, bench.random_packed(p.out(), p.in), dx};
  problem.epilogue = gelu_epilogue(bench, GemmEpilogue::Kind::kGeluBackward, dx);
  return case_of(bench, p, {problem}, bytes_of(bench, p, 2, bench.element(), bench.element()));
}

KernelCase weight_gradient(KernelBench& bench, const Product& p) {
  const Matrix x = bench.random(p.rows, p.in), dy = bench.random(p.rows, p.out());
  std::vector<GemmProblem> problems;
  const auto gradient = [&](std::int64_t height, std::int64_t width) {
    return bench.random(height, width, DType::kF32, Tensor::Rows::kContiguous);
  };
  if (p.in_first) {
    problems.push_back({x, bench.random_packed(p.rows, p.out()), gradient(p.in, p.out()), true});
  } else {
    const PackedMatrix* operand = bench.random_packed(p.rows, p.in);
    std::int64_t begin = 0;
    for (const std::int64_t out : p.outs) {
      problems.push_back({dy.columns(begin, out), operand, gradient(out, p.in), true});
      begin += out;
    }
  }
  return case_of(bench, p, problems, bytes_of(bench, p, 1, 4, bench.element()));
}

/// Projection, softmax, loss and both gradients, chunk by chunk.
KernelCase loss_head(KernelBench& bench) {
  const std::int64_t rows = bench.rows(), vocab = bench.config.vocab_size, hidden = bench.config.hidden_size;
  KernelCase made;
  made.shape = shape_text({rows, hidden, vocab});
  made.operations = 6.0 * static_cast<double>(rows) * static_cast<double>(vocab) * static_cast<double>(hidden);
  made.bytes = static_cast<double>(vocab * hidden) * (2 * bench.element() + 4);
  if (!bench.has_operands()) return made;
  const ModelContext& model = bench.keep(bench.model_context());
  LossHead& head_of_model = bench.keep(LossHead(model, rows));
  const Matrix weight = bench.random(vocab, hidden, bench.dtype, Tensor::Rows::kContiguous);
  head_of_model.pack(model, weight.data);
  const Matrix normed = bench.random(rows, hidden);
  const auto targets = bench.random_below(rows, vocab);
  const auto& to = bench.keep(LossHead::Gradients{
      bench.random(rows, hidden), bench.random(vocab, hidden, DType::kF32, Tensor::Rows::kContiguous), 1.0F});
  made.run = [&model, &head_of_model, normed, targets, &to] { head_of_model.run(model, normed, targets, &to); };
  made.results = {to.normed, to.weight};
  return made;
}

constexpr KernelEntry kProductKernels[] = {
    {"qkv.forward", [](KernelBench& bench) { return forward(bench, qkv(bench)); }},
    {"qkv.dx", [](KernelBench& bench) { return input_gradient(bench, qkv(bench)); }},
    {"qkv.dw", [](KernelBench& bench) { return weight_gradient(bench, qkv(bench)); }},
    {"attention_out.forward", [](KernelBench& bench) { return forward(bench, attention_out(bench)); }},
    {"attention_out.dx", [](KernelBench& bench) { return input_gradient(bench, attention_out(bench)); }},
    {"attention_out.dw", [](KernelBench& bench) { return weight_gradient(bench, attention_out(bench)); }},
    {"mlp_in.forward", [](KernelBench& bench) { return forward(bench, mlp_in(bench)); }},
    {"mlp_in_gelu.forward", [](KernelBench& bench) { return forward_with_gelu(bench, mlp_in(bench)); }},
    {"mlp_in.dx", [](KernelBench& bench) { return input_gradient(bench, mlp_in(bench)); }},
    {"mlp_in.dw", [](KernelBench& bench) { return weight_gradient(bench, mlp_in(bench)); }},
    {"mlp_out.forward", [](KernelBench& bench) { return forward(bench, mlp_out(bench)); }},
    {"mlp_out.dx", [](KernelBench& bench) { return input_gradient(bench, mlp_out(bench)); }},
    {"mlp_out_gelu.dx", [](KernelBench& bench) { return input_gradient_with_gelu(bench, mlp_out(bench)); }},
    {"mlp_out.dw", [](KernelBench& bench) { return weight_gradient(bench, mlp_out(bench)); }},
    {"head.forward", [](KernelBench& bench) { return forward(bench, head(bench)); }},
    {"head.dx", [](KernelBench& bench) { return input_gradient(bench, head(bench)); }},
    {"head.dw", [](KernelBench& bench) { return weight_gradient(bench, head(bench)); }},
    {"loss_head", loss_head},
};

}  // namespace

std::span<const KernelEntry> product_kernels() { return kProductKernels; }

}  // namespace zerofleet::bench
