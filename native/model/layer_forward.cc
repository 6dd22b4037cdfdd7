#include "kernels/gemm.h"
#include "kernels/rmsnorm.h"
#include "kernels/swiglu.h"
#include "model/layer.h"

namespace zerofleet {
namespace {

AttentionShape attention_shape(const ModelConfig& config, const PassShape& shape) {
  return {shape.batch, shape.length, config.num_attention_heads, config.num_key_value_heads, config.head_dim};
}

// normed = norm(input), and where there is a layer before: input = its middle + its MLP's output.
void norm_input(const ModelContext& model, const LayerWeights& weights, std::int64_t rows,
                const LayerActivations* previous, LayerActivations& act, const Matrix& projected) {
  RmsNormForward norm;
  norm.x = act.input.first_rows(rows);
  if (previous != nullptr) {
    norm.x = previous->middle.first_rows(rows);
    norm.delta = projected;
    norm.sum = act.input.first_rows(rows);
  }
  norm.weight = weights.input_norm;
  norm.eps = model.config.rms_norm_eps;
  norm.y = act.normed.first_rows(rows);
  norm.rstd = std::span(act.input_rstd).first(static_cast<std::size_t>(rows));
  rmsnorm(model.ctx, norm);
}

void attend(const ModelContext& model, const LayerWeights& weights, const PassShape& shape, LayerActivations& act,
            const Matrix& projected) {
  const ModelConfig& c = model.config;
  const std::int64_t rows = shape.rows(), query = c.query_size(), key_value = c.key_value_size();
  const Matrix normed = act.normed.first_rows(rows), qkv = act.qkv.first_rows(rows);
  const GemmProblem to_qkv[] = {{normed, &weights.q, qkv.columns(0, query)},
                                {normed, &weights.k, qkv.columns(query, key_value)},
                                {normed, &weights.v, qkv.columns(query + key_value, key_value)}};
  gemm(model.ctx, *model.scratch, to_qkv);
  rope(model.ctx, {qkv.columns(0, query + key_value), model.rotations, c.num_attention_heads + c.num_key_value_heads,
                   shape.length});
  const Matrix attended = act.attended.first_rows(rows);
  const auto lse = std::span(act.lse).first(static_cast<std::size_t>(rows * c.num_attention_heads));
  attention(model.ctx, *model.scratch, {attention_shape(c, shape), qkv, attended, lse});
  const GemmProblem to_hidden[] = {{attended, &weights.o, projected}};
  gemm(model.ctx, *model.scratch, to_hidden);
}

void mlp(const ModelContext& model, const LayerWeights& weights, std::int64_t rows, LayerActivations& act,
         const Matrix& projected) {
  const std::int64_t inner = model.config.intermediate_size;
  const Matrix normed = act.middle_normed.first_rows(rows), gate_up = act.gate_up.first_rows(rows);
  const GemmProblem to_inner[] = {{normed, &weights.gate, gate_up.columns(0, inner)},
                                  {normed, &weights.up, gate_up.columns(inner, inner)}};
  gemm(model.ctx, *model.scratch, to_inner);
  const Matrix inner_act = act.act.first_rows(rows);
  swiglu(model.ctx, gate_up, inner_act);
  const GemmProblem to_hidden[] = {{inner_act, &weights.down, projected}};
  gemm(model.ctx, *model.scratch, to_hidden);
}

}  // namespace

void layer_forward(const ModelContext& model, const LayerWeights& weights, const PassShape& shape,
                   const LayerActivations* previous, LayerActivations& act, const Matrix& projected) {
  const std::int64_t rows = shape.rows();
  norm_input(model, weights, rows, previous, act, projected);
  attend(model, weights, shape, act, projected);
  RmsNormForward norm;
  norm.x = act.input.first_rows(rows);
  norm.delta = projected;
  norm.sum = act.middle.first_rows(rows);
  norm.weight = weights.post_attention_norm;
  norm.eps = model.config.rms_norm_eps;
  norm.y = act.middle_normed.first_rows(rows);
  norm.rstd = std::span(act.middle_rstd).first(static_cast<std::size_t>(rows));
  rmsnorm(model.ctx, norm);
  mlp(model, weights, rows, act, projected);
}

}  // namespace zerofleet
