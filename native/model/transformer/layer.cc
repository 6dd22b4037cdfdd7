#include "model/transformer/layer.h"

namespace zerofleet {

Layer::Layer(const ModelContext& model, const LayerPlace& place, std::size_t number)
    : input_norm_(make_norm(model.config, place.input_norm)),
      attention_(model, place, number),
      middle_norm_(make_norm(model.config, place.post_attention_norm)),
      mlp_(make_mlp(model, place.mlp)),
      attention_dropout_(model.config.residual_dropout, dropout_site(number, DropoutPlace::kAttention),
                         model.config.residual_scale),
      mlp_dropout_(model.config.residual_dropout, dropout_site(number, DropoutPlace::kMlp),
                   model.config.residual_scale) {}

Layer::Kept::Kept(const ModelContext& model, const PassShape& shape, const Layer& layer)
    : normed(model.tensor(shape.rows(), model.config.hidden_size)),
      middle(model.tensor(shape.rows(), model.config.hidden_size)),
      middle_normed(model.tensor(shape.rows(), model.config.hidden_size)),
      input_norm(layer.input_norm_->make_kept(model, shape.rows())),
      middle_norm(layer.middle_norm_->make_kept(model, shape.rows())),
      attention(model, shape, layer.attention_),
      mlp(layer.mlp_->make_kept(model, shape)) {}

// 3·M·row(D), plus the bytes of norms, attention and MLP
std::size_t Layer::Kept::num_bytes() const {
  return bytes_of(normed, middle, middle_normed, input_norm, middle_norm, attention, *mlp);
}

Layer::Work::Work(const ModelContext& model, const PassShape& shape, const Layer& layer)
    : stream(model.tensor(shape.rows(), model.config.hidden_size)),
      normed(model.tensor(shape.rows(), model.config.hidden_size)),
      attention(model, shape, layer.attention_),
      mlp(layer.mlp_->make_work(model, shape, attention.qkv.operand)) {
  if (model.config.residual_dropout > 0 || model.config.residual_scale != 1)
    kept = model.tensor(shape.rows(), model.config.hidden_size);
}

// 2·M·row(D) or with residual dropout or scale 3·M·row(D), plus the bytes of norm, attention and MLP
std::size_t Layer::Work::num_bytes() const { return bytes_of(stream, normed, kept, norm, attention, *mlp); }

void Layer::request_forward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests) {
  input_norm_->bind(params);
  middle_norm_->bind(params);
  attention_.request_forward(model, params, requests);
  mlp_->request_forward(model, params, requests);
}

void Layer::request_backward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests) {
  attention_.request_backward(model, params, requests);
  mlp_->request_backward(model, params, requests);
}

void Layer::forward(const ModelContext& model, const Pass& pass, const Residual& residual, Kept& kept,
                    const Matrix& added) const {
  const std::int64_t rows = pass.rows();
  const Matrix normed = kept.normed.first_rows(rows), middle_normed = kept.middle_normed.first_rows(rows);
  const Matrix input = residual.delta.data == nullptr ? residual.x : residual.sum;
  input_norm_->forward(model, residual, normed, kept.input_norm);
  attention_.forward(model, pass, normed, added, kept.attention);
  attention_dropout_.forward(model, pass, added);
  middle_norm_->forward(model, {input, added, kept.middle.first_rows(rows)}, middle_normed, kept.middle_norm);
  mlp_->activate(model, pass, middle_normed, *kept.mlp);
}

void Layer::project(const ModelContext& model, const Pass& pass, const Kept& kept, const Matrix& added) const {
  mlp_->project(model, pass, *kept.mlp, added);
  mlp_dropout_.forward(model, pass, added);
}

void Layer::backward(const ModelContext& model, const Pass& pass, const Matrix& input, const Kept& kept, Work& work,
                     GradSink& sink) const {
  const auto here = [&](const Tensor& tensor) { return tensor.first_rows(pass.rows()); };
  const Matrix stream = here(work.stream), normed = here(work.normed), room = here(work.kept);
  const Matrix dmlp = mlp_dropout_.backward(model, pass, stream, room);
  mlp_->backward(model, pass, {here(kept.middle_normed), dmlp, normed}, *kept.mlp, *work.mlp, sink);
  middle_norm_->backward(model, {normed, here(kept.middle), stream, stream}, kept.middle_norm, work.norm, sink);
  const Matrix dattention = attention_dropout_.backward(model, pass, stream, room);
  attention_.backward(model, pass, {here(kept.normed), dattention, normed}, kept.attention, work.attention, sink);
  input_norm_->backward(model, {normed, input, stream, stream}, kept.input_norm, work.norm, sink);
}

}  // namespace zerofleet
