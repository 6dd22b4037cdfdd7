#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/transformer/layer.h"

namespace zerofleet {

/// Layers as operands of products. Stacks of models with the same parameters may share them.
using SharedLayers = std::shared_ptr<std::vector<Layer>>;
SharedLayers make_layers(const ModelContext& model, const ParamTable& table);

/// All layers, and their state from the forward to the backward: everything, or with activation checkpointing each
/// layer's input alone, from which the backward runs the layer again. Both give the same bits on a CPU, because a
/// layer's input is rounded to the compute dtype before anything is computed from it. Layers below the lowest that is
/// trained have no backward, and share what the others have alone.
class LayerStack {
 public:
  LayerStack(const ModelContext& model, const PassShape& shape, const ParamTable& table, bool checkpoint_activations,
             SharedLayers layers);

  /// `params` must stay where they are until the next call.
  void pack_forward(const ModelContext& model, ParamPointers params);
  /// The same for one layer, whose parameters alone must be there.
  void pack_forward(const ModelContext& model, ParamPointers params, std::size_t layer);
  /// After pack_forward(). The first call also allocates the work space of the backward.
  void pack_backward(const ModelContext& model);
  const SharedLayers& layers() const { return shared_; }
  std::size_t packed_bytes() const;
  std::size_t activation_bytes() const;

  /// Destination of the residual stream that enters the first layer. (M, D)
  Matrix input(std::int64_t rows) const { return inputs_.front().first_rows(rows); }

  /// `stream` enters the first layer; input() is its x, or its sum where there is a delta. The result's x + delta is
  /// the stream that leaves the last layer; delta is `added` (M, D).
  Residual forward(const ModelContext& model, const Pass& pass, Residual stream, const Matrix& added);

  /// Gradients of the stream and of a norm's output, as the norm after the last layer leaves them: to be used between
  /// pack_backward() and backward().
  Layer::Work& work() { return *work_; }

  /// After forward() of a whole micro-batch. On entry work().stream is the gradient of the last layer's output, on
  /// return that of input(). If everything before a layer is frozen, the backward ends at that layer. `added` (M, D) is
  /// overwritten.
  void backward(const ModelContext& model, const Pass& pass, const Matrix& added, GradSink& sink);

 private:
  /// Index of a layer's input; without activation checkpointing also of what it keeps.
  std::size_t place_of(std::size_t layer) const {
    const std::size_t shared = lowest_trained_ == 0 ? 0 : 1;
    return layer < lowest_trained_ ? 0 : layer - lowest_trained_ + shared;
  }
  Layer::Kept& kept_of(std::size_t layer) { return kept_[checkpoints_ ? 0 : place_of(layer)]; }

  std::size_t lowest_trained_;  // layer; the backward ends there
  bool checkpoints_;            // activations
  PassShape shape_;
  ParamPointers params_;
  SharedLayers shared_;
  std::span<Layer> layers_;          // the same
  std::vector<Tensor> inputs_;       // (M, D) by layer
  std::vector<Layer::Kept> kept_;    // by layer, or one for all layers in turn
  std::optional<Layer::Work> work_;  // made by the first pack_backward()
};

}  // namespace zerofleet
