#include "kernels/gemm.h"
#include "kernels/rmsnorm.h"
#include "kernels/swiglu.h"
#include "model/layer.h"

// For y = x Wᵀ: dx = dy W and dW = dyᵀ x. Both come out of one parallel section, after x was packed as an operand.
namespace zerofleet {
namespace {

GemmProblem weight_gradient(const Matrix& dy, const PackedMatrix& x, const Tensor& dw) {
  return {dy, &x, dw.view(), true};
}

void mlp_backward(const ModelContext& model, const LayerWeights& weights, const LayerActivations& act,
                  LayerGradients& grads, const EmitGrad& emit) {
  const std::int64_t inner = model.config.intermediate_size;
  const PackRequest act_operand[] = {{act.act.view(), SourceRows::kAlongK, &grads.packed_act},
                                     {act.middle_normed.view(), SourceRows::kAlongK, &grads.packed_hidden}};
  pack(model.ctx, act_operand);
  const GemmProblem down[] = {{grads.stream.view(), &weights.down_back, grads.act.view()},
                              weight_gradient(grads.stream.view(), grads.packed_act, grads.ddown)};
  gemm(model.ctx, *model.scratch, down);
  emit(weights.index.down, grads.ddown.floats());
  swiglu_backward(model.ctx, act.gate_up.view(), grads.act.view(), grads.gate_up.view());
  const Matrix dgate_up = grads.gate_up.view();
  const GemmProblem gate_up[] = {{dgate_up, &weights.gate_up_back, grads.normed.view()},
                                 weight_gradient(dgate_up.columns(0, inner), grads.packed_hidden, grads.dgate),
                                 weight_gradient(dgate_up.columns(inner, inner), grads.packed_hidden, grads.dup)};
  gemm(model.ctx, *model.scratch, gate_up);
  emit(weights.index.up, grads.dup.floats());
  emit(weights.index.gate, grads.dgate.floats());
}

/// Takes grads.normed through a norm and adds it to the stream's gradient.
void norm_backward(const ModelContext& model, const void* weight, std::size_t param, const Tensor& x,
                   std::span<const float> rstd, LayerGradients& grads, const EmitGrad& emit) {
  RmsNormBackward norm;
  norm.dy = grads.normed.view();
  norm.x = x.view();
  norm.weight = weight;
  norm.rstd = rstd;
  norm.residual = grads.stream.view();
  norm.dx = grads.stream.view();
  norm.dweight = grads.dnorm;
  rmsnorm_backward(model.ctx, norm);
  emit(param, grads.dnorm);
}

void output_backward(const ModelContext& model, const LayerWeights& weights, const LayerActivations& act,
                     LayerGradients& grads, const EmitGrad& emit) {
  const PackRequest operands[] = {{act.attended.view(), SourceRows::kAlongK, &grads.packed_attended},
                                  {act.normed.view(), SourceRows::kAlongK, &grads.packed_hidden}};
  pack(model.ctx, operands);
  const GemmProblem output[] = {{grads.stream.view(), &weights.o_back, grads.attended.view()},
                                weight_gradient(grads.stream.view(), grads.packed_attended, grads.d_o)};
  gemm(model.ctx, *model.scratch, output);
  emit(weights.index.o, grads.d_o.floats());
}

void attention_and_qkv_backward(const ModelContext& model, const LayerWeights& weights, const PassShape& shape,
                                const LayerActivations& act, LayerGradients& grads, const EmitGrad& emit) {
  const ModelConfig& c = model.config;
  const std::int64_t query = c.query_size(), key_value = c.key_value_size();
  const AttentionShape heads{shape.batch, shape.length, c.num_attention_heads, c.num_key_value_heads, c.head_dim};
  const Matrix dqkv = grads.qkv.view();
  attention_backward(model.ctx, *model.scratch,
                     {heads, act.qkv.view(), act.attended.view(), act.lse, grads.attended.view(), dqkv});
  rope(model.ctx, {dqkv.columns(0, query + key_value), model.rotations, c.num_attention_heads + c.num_key_value_heads,
                   shape.length, true});
  const GemmProblem qkv[] = {
      {dqkv, &weights.qkv_back, grads.normed.view()},
      weight_gradient(dqkv.columns(0, query), grads.packed_hidden, grads.dq),
      weight_gradient(dqkv.columns(query, key_value), grads.packed_hidden, grads.dk),
      weight_gradient(dqkv.columns(query + key_value, key_value), grads.packed_hidden, grads.dv)};
  gemm(model.ctx, *model.scratch, qkv);
  emit(weights.index.v, grads.dv.floats());
  emit(weights.index.k, grads.dk.floats());
  emit(weights.index.q, grads.dq.floats());
}

}  // namespace

void layer_backward(const ModelContext& model, const LayerWeights& weights, const PassShape& shape,
                    const LayerActivations& act, LayerGradients& grads, const EmitGrad& emit) {
  mlp_backward(model, weights, act, grads, emit);
  norm_backward(model, weights.post_attention_norm, weights.index.post_attention_norm, act.middle, act.middle_rstd,
                grads, emit);
  output_backward(model, weights, act, grads, emit);
  attention_and_qkv_backward(model, weights, shape, act, grads, emit);
  norm_backward(model, weights.input_norm, weights.index.input_norm, act.input, act.input_rstd, grads, emit);
}

}  // namespace zerofleet
