#include <array>

#include "model/layer.h"

// The sizes of what is allocated here, which a memory estimate repeats. D hidden_size, I intermediate_size, H heads,
// Q = H · head_dim, KV = key/value heads · head_dim, QKV = Q + 2·KV, M = micro-batch · sequence length, e bytes of an
// element of the compute dtype, and
//   row(c)    bytes of a tensor's row: c·e, plus 64 where c·e is a multiple of 2048 (see Tensor)
//   packed(k, n) bytes of an operand: 4 · steps(k) · (n rounded up to 32), where steps(k) is k/2 rounded up with pairs
//             (bf16 on a path that multiplies bf16), else k (see PackedMatrix)
namespace zerofleet {
namespace {

/// Bytes of tensors and operands together.
template <class... Parts>
std::size_t bytes_of(const Parts&... parts) {
  return (parts.num_bytes() + ...);
}

std::size_t bytes_of(const std::vector<float>& values) { return values.size() * sizeof(float); }

ConstMatrix parameter(const ModelContext& model, std::span<const std::byte* const> params, std::size_t index,
                      std::int64_t rows, std::int64_t cols) {
  return {params[index], model.dtype, rows, cols, cols};
}

}  // namespace

LayerWeights::LayerWeights(const ModelContext& model, const LayerParamIndex& place) : index(place) {
  const ModelConfig& c = model.config;
  const auto operand = [&](std::int64_t in, std::int64_t out) { return PackedMatrix(model.ctx, model.dtype, in, out); };
  q = operand(c.hidden_size, c.query_size());
  k = operand(c.hidden_size, c.key_value_size());
  v = operand(c.hidden_size, c.key_value_size());
  o = operand(c.query_size(), c.hidden_size);
  gate = operand(c.hidden_size, c.intermediate_size);
  up = operand(c.hidden_size, c.intermediate_size);
  down = operand(c.intermediate_size, c.hidden_size);
}

// Forward: packed(D, Q) + 2·packed(D, KV) + packed(Q, D) + 2·packed(D, I) + packed(I, D).
// Backward, from its first pass on: packed(QKV, D) + packed(D, Q) + packed(2·I, D) + packed(D, I).
std::size_t LayerWeights::num_bytes() const {
  return bytes_of(q, k, v, o, gate, up, down) + bytes_of(qkv_back, o_back, gate_up_back, down_back);
}

void LayerWeights::pack_forward(const ModelContext& model, std::span<const std::byte* const> params) {
  const ModelConfig& c = model.config;
  const auto request = [&](std::size_t param, std::int64_t rows, std::int64_t cols, PackedMatrix& target) {
    return PackRequest{parameter(model, params, param, rows, cols), SourceRows::kAlongN, &target, 0};
  };
  const std::array requests{request(index.q, c.query_size(), c.hidden_size, q),
                            request(index.k, c.key_value_size(), c.hidden_size, k),
                            request(index.v, c.key_value_size(), c.hidden_size, v),
                            request(index.o, c.hidden_size, c.query_size(), o),
                            request(index.gate, c.intermediate_size, c.hidden_size, gate),
                            request(index.up, c.intermediate_size, c.hidden_size, up),
                            request(index.down, c.hidden_size, c.intermediate_size, down)};
  pack(model.ctx, requests);
  input_norm = params[index.input_norm];
  post_attention_norm = params[index.post_attention_norm];
}

void LayerWeights::pack_backward(const ModelContext& model, std::span<const std::byte* const> params) {
  const ModelConfig& c = model.config;
  if (qkv_back.k() == 0) {
    const auto operand = [&](std::int64_t rows, std::int64_t cols) {
      return PackedMatrix(model.ctx, model.dtype, rows, cols);
    };
    qkv_back = operand(c.qkv_size(), c.hidden_size);
    o_back = operand(c.hidden_size, c.query_size());
    gate_up_back = operand(2 * c.intermediate_size, c.hidden_size);
    down_back = operand(c.hidden_size, c.intermediate_size);
  }
  const auto request = [&](std::size_t param, std::int64_t rows, std::int64_t cols, PackedMatrix& target,
                           std::int64_t at = 0) {
    return PackRequest{parameter(model, params, param, rows, cols), SourceRows::kAlongK, &target, at};
  };
  const std::array requests{
      request(index.q, c.query_size(), c.hidden_size, qkv_back),
      request(index.k, c.key_value_size(), c.hidden_size, qkv_back, c.query_size()),
      request(index.v, c.key_value_size(), c.hidden_size, qkv_back, c.query_size() + c.key_value_size()),
      request(index.o, c.hidden_size, c.query_size(), o_back),
      request(index.gate, c.intermediate_size, c.hidden_size, gate_up_back),
      request(index.up, c.intermediate_size, c.hidden_size, gate_up_back, c.intermediate_size),
      request(index.down, c.hidden_size, c.intermediate_size, down_back)};
  pack(model.ctx, requests);
}

LayerActivations::LayerActivations(const ModelContext& model, const PassShape& shape) {
  const ModelConfig& c = model.config;
  const std::int64_t rows = shape.rows();
  const auto tensor = [&](std::int64_t cols) { return Tensor(model.ctx, model.dtype, rows, cols); };
  input = tensor(c.hidden_size);
  normed = tensor(c.hidden_size);
  qkv = tensor(c.qkv_size());
  attended = tensor(c.query_size());
  middle = tensor(c.hidden_size);
  middle_normed = tensor(c.hidden_size);
  gate_up = tensor(2 * c.intermediate_size);
  act = tensor(c.intermediate_size);
  input_rstd.resize(static_cast<std::size_t>(rows));
  middle_rstd.resize(static_cast<std::size_t>(rows));
  lse.resize(static_cast<std::size_t>(rows * c.num_attention_heads));
}

// M · (4·row(D) + row(QKV) + row(Q) + row(2·I) + row(I)) + 4·M·(2 + H).
std::size_t LayerActivations::num_bytes() const {
  return bytes_of(input, normed, qkv, attended, middle, middle_normed, gate_up, act) + bytes_of(input_rstd) +
         bytes_of(middle_rstd) + bytes_of(lse);
}

LayerGradients::LayerGradients(const ModelContext& model, const PassShape& shape) {
  const ModelConfig& c = model.config;
  const std::int64_t rows = shape.rows();
  const auto tensor = [&](std::int64_t cols) { return Tensor(model.ctx, model.dtype, rows, cols); };
  stream = tensor(c.hidden_size);
  normed = tensor(c.hidden_size);
  qkv = tensor(c.qkv_size());
  attended = tensor(c.query_size());
  gate_up = tensor(2 * c.intermediate_size);
  act = tensor(c.intermediate_size);
  packed_hidden = PackedMatrix(model.ctx, model.dtype, rows, c.hidden_size);
  packed_attended = PackedMatrix(model.ctx, model.dtype, rows, c.query_size());
  packed_act = PackedMatrix(model.ctx, model.dtype, rows, c.intermediate_size);
  const auto gradient = [&](std::int64_t out, std::int64_t in) {
    return Tensor(model.ctx, DType::kF32, out, in, Tensor::Rows::kContiguous);
  };
  dq = gradient(c.query_size(), c.hidden_size);
  dk = gradient(c.key_value_size(), c.hidden_size);
  dv = gradient(c.key_value_size(), c.hidden_size);
  d_o = gradient(c.hidden_size, c.query_size());
  dgate = gradient(c.intermediate_size, c.hidden_size);
  dup = gradient(c.intermediate_size, c.hidden_size);
  ddown = gradient(c.hidden_size, c.intermediate_size);
  dnorm.resize(static_cast<std::size_t>(c.hidden_size));
}

// M · (2·row(D) + row(QKV) + row(Q) + row(2·I) + row(I)) + packed(M, D) + packed(M, Q) + packed(M, I), and in fp32 the
// gradients of one layer's parameters: 4 · (2·D·Q + 2·D·KV + 3·D·I + D).
std::size_t LayerGradients::num_bytes() const {
  return bytes_of(stream, normed, qkv, attended, gate_up, act) + bytes_of(packed_hidden, packed_attended, packed_act) +
         bytes_of(dq, dk, dv, d_o, dgate, dup, ddown) + bytes_of(dnorm);
}

}  // namespace zerofleet
