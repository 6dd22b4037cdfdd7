// The graphs that cuDNN recognises as attention, operation by operation. P is rounded to the storage type before it is
// multiplied; everything else between operations is fp32.
//
// Forward: S = Q Kᵀ · scale, hidden keys −∞; M = max S, E = exp(S − M), L = Σ E; stats = M + ln L; O = (E / L) V.
// Backward: D = Σ dO · O; P = exp(S − stats); dV = Pᵀ dO; dS = P · (dO Vᵀ − D) · scale; dK = dSᵀ Q; dQ = dS K.
//
// The output dQ is the product itself, not the sum of a workspace of fp32. So cuDNN keeps dS in memory, and multiplies
// it by K in one pass of a fixed order. Gradients of shared keys and values are those of each query head, summed.
#include "kernels/attention/cuda/cudnn_attention_graph.h"

#include <cmath>
#include <limits>

namespace zerofleet::cudnn {
namespace {

DataType storage(DType dtype) { return dtype == DType::kBF16 ? kBFloat16 : kFloat16; }

/// The tensors and steps that both graphs have.
class AttentionBuilder {
 public:
  AttentionBuilder(std::shared_ptr<const Library> library, const GraphShape& shape)
      : graph(std::move(library)),
        s(shape),
        io(storage(shape.dtype)),
        scores{s.batch, s.heads, s.length, s.length},
        rows{s.batch, s.heads, s.length, 1},
        scale(graph.number(s.scale)) {}

  /// (B, heads, T, d) of a matrix whose rows are tokens.
  Tensor heads_of(Operand id, std::int64_t heads, std::int64_t row) {
    return graph.in_memory(id, io, {s.batch, heads, s.length, s.head_dim}, {s.length * row, s.head_dim, row, 1});
  }
  /// (B, heads, d, T) of the same.
  Tensor transposed_heads_of(Operand id, std::int64_t row) {
    return graph.in_memory(id, io, {s.batch, s.kv_heads, s.head_dim, s.length}, {s.length * row, s.head_dim, 1, row});
  }
  Tensor row_values(Operand id) {
    return graph.in_memory(id, kFloat32, rows, {s.all_heads * s.length, s.length, 1, 1});
  }

  Tensor scaled_scores(const Tensor& query, const Tensor& key_transposed) {
    const Tensor products = graph.matmul(graph.between(kFloat32, scores), query, key_transposed);
    return graph.pointwise(kMultiply, graph.between(kFloat32, scores), products, scale);
  }

  /// Keys behind the query, and those more than a window before it, become −∞.
  Tensor hide(Tensor values) {
    const auto hidden_unless = [&](const Tensor& condition) {
      const Tensor hidden = graph.number(-std::numeric_limits<float>::infinity());
      values = graph.select(graph.between(kFloat32, scores), values, hidden, condition);
    };
    const auto index_along = [&](std::int64_t axis) {
      return graph.index(graph.between(kInt32, scores), values, axis);
    };
    const Tensor row = index_along(2), col = index_along(3);
    hidden_unless(graph.pointwise(kGreaterOrEqual, graph.between(kBool, scores), row, col, kBool));
    if (s.window == 0 || s.window >= s.length) return values;
    const Tensor window = graph.number(static_cast<float>(s.window));
    const Tensor own_row = index_along(2), own_col = index_along(3);
    const Tensor last_row = graph.pointwise(kAdd, graph.between(kFloat32, scores), own_col, window);
    hidden_unless(graph.pointwise(kGreater, graph.between(kBool, scores), last_row, own_row, kBool));
    return values;
  }

  GraphBuilder graph;
  GraphShape s;
  DataType io;
  Extents scores, rows;  // (B, H, T, T) and (B, H, T, 1)
  Tensor scale;
};

void add_forward(AttentionBuilder& b) {
  GraphBuilder& g = b.graph;
  const GraphShape& s = b.s;
  const Tensor query = b.heads_of(kQuery, s.heads, s.qkv_row), key = b.transposed_heads_of(kKey, s.qkv_row);
  const Tensor value = b.heads_of(kValue, s.kv_heads, s.qkv_row), out = b.heads_of(kOut, s.heads, s.out_row);
  const Tensor stats = b.row_values(kStats);
  const auto score_values = [&] { return g.between(kFloat32, b.scores); };
  const auto row_values = [&] { return g.between(kFloat32, b.rows); };

  const Tensor visible = b.hide(b.scaled_scores(query, key));
  const Tensor largest = g.reduce(kMaximum, row_values(), visible);
  const Tensor shifted = g.pointwise(kSubtract, score_values(), visible, largest);
  const Tensor exps = g.pointwise(kExp, score_values(), shifted);
  const Tensor sums = g.reduce(kSum, row_values(), exps);
  g.pointwise(kAdd, stats, largest, g.pointwise(kLog, row_values(), sums));
  const Tensor probs = g.pointwise(kDivide, g.between(b.io, b.scores), exps, sums);
  g.matmul(out, probs, value);
}

/// gradient = Σ of the query heads of a group of leftᵀ · right.
void add_key_gradient(AttentionBuilder& b, const Tensor& gradient, const Tensor& left, const Tensor& right) {
  GraphBuilder& g = b.graph;
  const GraphShape& s = b.s;
  const std::int64_t of_head = s.length * s.length;
  const Tensor transposed = g.reshape(g.between(b.io, b.scores, {s.heads * of_head, of_head, 1, s.length}), left);
  if (s.heads == s.kv_heads) {
    g.matmul(gradient, transposed, right);
    return;
  }
  g.reduce(kSum, gradient, g.matmul(g.between(b.io, {s.batch, s.heads, s.length, s.head_dim}), transposed, right));
}

void add_backward(AttentionBuilder& b) {
  GraphBuilder& g = b.graph;
  const GraphShape& s = b.s;
  const Tensor query = b.heads_of(kQuery, s.heads, s.qkv_row), key = b.transposed_heads_of(kKey, s.qkv_row);
  const Tensor value = b.transposed_heads_of(kValue, s.qkv_row), out = b.heads_of(kOut, s.heads, s.out_row);
  const Tensor stats = b.row_values(kStats), dout = b.heads_of(kOutGradient, s.heads, s.dout_row);
  const Tensor dquery = b.heads_of(kQueryGradient, s.heads, s.dqkv_row);
  const Tensor dkey = b.heads_of(kKeyGradient, s.kv_heads, s.dqkv_row);
  const Tensor dvalue = b.heads_of(kValueGradient, s.kv_heads, s.dqkv_row);
  const auto score_values = [&] { return g.between(kFloat32, b.scores); };

  const Extents packed_rows{s.heads * s.length, s.length, 1, 1};
  const Tensor row_dots = g.in_memory(kRowDots, kFloat32, b.rows, packed_rows);
  const Tensor products =
      g.pointwise(kMultiply, g.between(kFloat32, {s.batch, s.heads, s.length, s.head_dim}), dout, out);
  const Tensor dots = g.reduce(kSum, g.between(kFloat32, b.rows), products);
  g.pointwise(kMultiply, row_dots, dots, g.number(1));  // the factor of dropout, which cuDNN's pattern has

  const Tensor logs = g.pointwise(kSubtract, score_values(), b.scaled_scores(query, key), stats);
  const Tensor probs = g.pointwise(kExp, score_values(), b.hide(logs));
  add_key_gradient(b, dvalue, probs, dout);

  const Tensor dprobs = g.matmul(score_values(), dout, value);
  const Tensor centred = g.pointwise(kSubtract, score_values(), dprobs, row_dots);
  const Tensor weighted = g.pointwise(kMultiply, score_values(), centred, probs);
  const Tensor dscores = g.pointwise(kMultiply, score_values(), weighted, b.scale);
  add_key_gradient(b, dkey, dscores, query);
  const Tensor keys = g.reshape(g.between(kFloat32, {s.batch, s.kv_heads, s.length, s.head_dim},
                                          {s.length * s.qkv_row, s.head_dim, s.qkv_row, 1}),
                                key);
  g.matmul(dquery, dscores, keys);
}

}  // namespace

std::int64_t score_bytes(const GraphShape& shape) {
  const std::int64_t rounded = (shape.length + 63) / 64 * 64;
  return shape.batch * shape.heads * rounded * rounded * 2;
}

Graph attention_graph(const std::shared_ptr<const Library>& library, const GraphShape& shape, Handle* handle) {
  AttentionBuilder builder(library, shape);
  if (shape.is_backward) {
    add_backward(builder);
  } else {
    add_forward(builder);
  }
  return builder.graph.finish(handle);
}

}  // namespace zerofleet::cudnn
