#pragma once

#include <memory>
#include <vector>

#include "model/layers/attention.h"
#include "model/layers/dropout.h"
#include "model/layers/norm.h"
#include "model/mlp/mlp.h"

namespace zerofleet {

/// A transformer layer: stream + attention(norm(stream)), then that + MLP(norm(that)). A model has norms of these
/// inputs, norms of the outputs of attention and MLP, or both. With parallel_residual it is stream +
/// attention(norm(stream)) + MLP(norm(stream)).
class Layer {
 public:
  Layer(const ModelContext& model, const LayerSpec& spec, std::size_t number);

  /// State that the forward keeps for the backward beside the layer's input.
  struct Kept {
    Kept(const ModelContext& model, const PassShape& shape, const Layer& layer);
    std::size_t num_bytes() const;

    Tensor normed;         // (M, D), with a norm before attention
    Tensor attention_out;  // (M, D) the input of the norm after attention
    Tensor middle;         // (M, D) the residual stream after attention
    Tensor middle_normed;  // (M, D), with a norm before the MLP
    Tensor mlp_out;        // (M, D) the input of the norm after the MLP
    Norm::Kept input_norm, attention_output_norm, middle_norm, mlp_output_norm;
    AttentionBlock::Kept attention;
    std::unique_ptr<Mlp::Kept> mlp;
  };

  /// Memory that all layers share during the backward.
  struct Work {
    Work(const ModelContext& model, const PassShape& shape, const Layer& layer);
    std::size_t num_bytes() const;

    Tensor stream;  // (M, D) gradient of the residual stream, from the last layer down to the first
    Tensor normed;  // (M, D)
    Tensor kept;    // (M, D) the gradient of attention's or the MLP's output, where it is not the stream's alone
    Norm::Work norm;
    AttentionBlock::Work attention;
    std::unique_ptr<Mlp::Work> mlp;
  };

  /// Parameters as operands: of the forward, and of the backward from the first of its requests on.
  void request_forward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests);
  void request_backward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests);
  std::size_t packed_bytes() const { return attention_.packed_bytes() + mlp_->packed_bytes(); }

  /// Fills `kept`, so that backward() can follow. residual.sum, or residual.x where there is no delta, is the layer's
  /// input then. `added` (M, D) is overwritten.
  void forward(const ModelContext& model, const Pass& pass, const Residual& residual, Kept& kept,
               const Matrix& added) const;

  /// After forward(): the addend of kept.middle, which makes the layer's output.
  void project(const ModelContext& model, const Pass& pass, Kept& kept, const Matrix& added) const;
  /// backward() reads what project() keeps.
  bool keeps_projection() const { return mlp_output_norm_ != nullptr; }

  /// On entry work.stream is the gradient of the layer's output, on return that of its input (M, D). Parameters'
  /// gradients are emitted in reverse canonical order.
  void backward(const ModelContext& model, const Pass& pass, const Matrix& input, Kept& kept, Work& work,
                GradSink& sink) const;

 private:
  std::unique_ptr<Norm> input_norm_;  // null: the model has none here, as below
  AttentionBlock attention_;
  std::unique_ptr<Norm> attention_output_norm_;
  std::unique_ptr<Norm> middle_norm_;
  std::unique_ptr<Mlp> mlp_;
  std::unique_ptr<Norm> mlp_output_norm_;
  Dropout attention_dropout_, mlp_dropout_;
  bool is_parallel_;
};

}  // namespace zerofleet
