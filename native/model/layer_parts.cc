#include "model/layer.h"

#include <array>

namespace zerofleet {
namespace {

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

}  // namespace zerofleet
