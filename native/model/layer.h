#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/context.h"
#include "kernels/attention.h"
#include "kernels/packed_matrix.h"
#include "kernels/rope.h"
#include "kernels/scratch.h"
#include "model/model_config.h"
#include "model/param_index.h"
#include "model/tensor.h"

namespace zerofleet {

/// Where kernels run and what they compute in, for all parts of a model.
struct ModelContext {
  Context ctx;
  ModelConfig config;
  DType dtype = DType::kF32;
  Scratch* scratch = nullptr;
  const RopeTable* rotations = nullptr;
};

/// The pass in hand: how many sequences of how many tokens.
struct PassShape {
  std::int64_t batch = 0;
  std::int64_t length = 0;
  std::int64_t rows() const { return batch * length; }
};

/// Parameters of one layer as operands. (in, out) operands serve the forward, (out, in) ones the backward.
struct LayerWeights {
  LayerWeights(const ModelContext& model, const LayerParamIndex& index);
  void pack_forward(const ModelContext& model, std::span<const std::byte* const> params);
  void pack_backward(const ModelContext& model, std::span<const std::byte* const> params);
  std::size_t num_bytes() const;

  LayerParamIndex index;
  PackedMatrix q, k, v, o, gate, up, down;
  PackedMatrix qkv_back, o_back, gate_up_back, down_back;  // q, k, v one after the other in k; so are gate and up
  const void* input_norm = nullptr;
  const void* post_attention_norm = nullptr;
};

/// What the forward of one layer keeps for its backward. M = batch · length.
struct LayerActivations {
  LayerActivations(const ModelContext& model, const PassShape& shape);
  std::size_t num_bytes() const;

  Tensor input;                                // (M, D) the residual stream
  Tensor normed;                               // (M, D)
  Tensor qkv;                                  // (M, QKV) after rotation
  Tensor attended;                             // (M, Q)
  Tensor middle;                               // (M, D) the residual stream after attention
  Tensor middle_normed;                        // (M, D)
  Tensor gate_up;                              // (M, 2·I)
  Tensor act;                                  // (M, I)
  std::vector<float> input_rstd, middle_rstd;  // (M)
  std::vector<float> lse;                      // (B, H, T)
};

/// Memory that all layers share during the backward, and the gradients of one layer's parameters.
struct LayerGradients {
  LayerGradients(const ModelContext& model, const PassShape& shape);
  std::size_t num_bytes() const;

  Tensor stream;    // (M, D) gradient of the residual stream, from the last layer down to the first
  Tensor normed;    // (M, D)
  Tensor qkv;       // (M, QKV)
  Tensor attended;  // (M, Q)
  Tensor gate_up;   // (M, 2·I)
  Tensor act;       // (M, I)
  PackedMatrix packed_hidden, packed_attended, packed_act;  // (M, D), (M, Q), (M, I) as operands
  Tensor dq, dk, dv, d_o, dgate, dup, ddown;                // fp32, shapes of the parameters
  std::vector<float> dnorm;                                 // (D)
};

/// Takes a finished gradient of parameter `param`.
using EmitGrad = std::function<void(std::size_t param, std::span<const float> grad)>;

/// The layer's pass. On entry act.input holds the residual stream, except where `previous` is given: then it is made
/// as previous->middle + projected, together with the norm. On return `projected` holds the MLP's output, which is to
/// be added to act.middle. projected: (M, D).
void layer_forward(const ModelContext& model, const LayerWeights& weights, const PassShape& shape,
                   const LayerActivations* previous, LayerActivations& act, const Matrix& projected);

/// On entry grads.stream is the gradient of the layer's output, on return that of its input. Parameters' gradients are
/// emitted in reverse canonical order.
void layer_backward(const ModelContext& model, const LayerWeights& weights, const PassShape& shape,
                    const LayerActivations& act, LayerGradients& grads, const EmitGrad& emit);

}  // namespace zerofleet
