#include "model/transformer/layer_stack.h"

#include <algorithm>
#include <utility>

namespace zerofleet {
namespace {

/// Returns the lowest layer with a trained parameter, 0 if the embeddings have one, or the number of layers.
std::size_t lowest_trained_layer(const ModelContext& model, const ParamTable& table) {
  if (model.trains(table.embed) || (table.positions && model.trains(*table.positions))) return 0;
  std::size_t lowest = table.layers.size();
  for (std::size_t param = 0; param < table.specs.size(); ++param) {
    const int layer = table.specs[param].layer;
    if (layer >= 0 && model.trains(param)) lowest = std::min(lowest, static_cast<std::size_t>(layer));
  }
  return lowest;
}

}  // namespace

SharedLayers make_layers(const ModelContext& model, const ParamTable& table) {
  auto layers = std::make_shared<std::vector<Layer>>();
  for (const LayerSpec& spec : table.layers) layers->emplace_back(model, spec, layers->size());
  return layers;
}

LayerStack::LayerStack(const ModelContext& model, const PassShape& shape, const ParamTable& table,
                       bool checkpoint_activations, SharedLayers layers)
    : lowest_trained_(lowest_trained_layer(model, table)),
      checkpoints_(checkpoint_activations),
      shape_(shape),
      shared_(std::move(layers)),
      layers_(*shared_) {
  for (std::size_t number = 0; number < layers_.size(); ++number) {
    if (place_of(number) < inputs_.size()) continue;  // shared
    inputs_.push_back(model.tensor(shape.rows(), model.config.hidden_size));
    if (kept_.empty() || !checkpoints_) kept_.emplace_back(model, shape, layers_[number]);
  }
}

// A parallel section per layer: layers are many, and their operands together would be a long list.
void LayerStack::pack_forward(const ModelContext& model, ParamPointers params) {
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) pack_forward(model, params, layer);
}

void LayerStack::pack_forward(const ModelContext& model, ParamPointers params, std::size_t layer) {
  params_ = params;
  std::vector<PackRequest> requests;
  layers_[layer].request_forward(model, params_, requests);
  pack(model.ctx, requests);
}

void LayerStack::pack_backward(const ModelContext& model) {
  if (!work_) work_.emplace(model, shape_, layers_.front());
  for (Layer& layer : layers_) {
    std::vector<PackRequest> requests;
    layer.request_backward(model, params_, requests);
    pack(model.ctx, requests);
  }
}

std::size_t LayerStack::packed_bytes() const {
  std::size_t num_bytes = 0;
  for (const Layer& layer : layers_) num_bytes += layer.packed_bytes();
  return num_bytes;
}

// M·row(D) per layer, what a layer keeps once per layer (with activation checkpointing once in all), and from the first
// backward on the work space of one layer. All layers below the lowest that is trained count as one.
std::size_t LayerStack::activation_bytes() const {
  std::size_t num_bytes = work_ ? work_->num_bytes() : 0;
  for (const Tensor& input : inputs_) num_bytes += input.num_bytes();
  for (const Layer::Kept& kept : kept_) num_bytes += kept.num_bytes();
  return num_bytes;
}

Residual LayerStack::forward(const ModelContext& model, const Pass& pass, Residual stream, const Matrix& added) {
  const std::int64_t rows = pass.rows();
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    if (layer > 0) stream.sum = inputs_[place_of(layer)].first_rows(rows);
    Layer::Kept& kept = kept_of(layer);
    layers_[layer].forward(model, pass, stream, kept, added);
    layers_[layer].project(model, pass, kept, added);
    stream = {kept.middle.first_rows(rows), added, {}};
  }
  return stream;
}

void LayerStack::backward(const ModelContext& model, const Pass& pass, const Matrix& added, GradSink& sink) {
  for (std::size_t layer = layers_.size(); layer-- > lowest_trained_;) {
    const Matrix input = inputs_[place_of(layer)].first_rows(pass.rows());
    Layer::Kept& kept = kept_of(layer);
    const bool is_overwritten = checkpoints_ && layer + 1 < layers_.size();
    if (is_overwritten) layers_[layer].forward(model, pass, {input, {}, {}}, kept, added);
    if (is_overwritten && layers_[layer].keeps_projection()) layers_[layer].project(model, pass, kept, added);
    layers_[layer].backward(model, pass, input, kept, *work_, sink);
  }
}

}  // namespace zerofleet
