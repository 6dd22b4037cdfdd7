#include "model/transformer/layer.h"

#include <initializer_list>

namespace zerofleet {
namespace {

/// Room for what a norm reads or writes; none without the norm.
Tensor room_for(const std::unique_ptr<Norm>& norm, const ModelContext& model, const PassShape& shape) {
  return norm ? model.tensor(shape.rows(), model.config.hidden_size) : Tensor();
}

Norm::Kept kept_by(const std::unique_ptr<Norm>& norm, const ModelContext& model, const PassShape& shape) {
  return norm ? norm->make_kept(model, shape.rows()) : Norm::Kept();
}

/// Makes the sum of a stream that no norm makes.
void add_up(const ModelContext& model, const Residual& residual) {
  if (residual.delta.data == nullptr) return;
  scale(model.ctx, 1, residual.x, residual.sum);
  add(model.ctx, residual.delta, residual.sum);
}

}  // namespace

Layer::Layer(const ModelContext& model, const LayerSpec& spec, std::size_t number)
    : input_norm_(make_norm(model.config, spec.input_norm)),
      attention_(model, spec, number),
      attention_output_norm_(make_norm(model.config, spec.attention_output_norm)),
      middle_norm_(make_norm(model.config, spec.post_attention_norm)),
      mlp_(make_mlp(model, spec.mlp)),
      mlp_output_norm_(make_norm(model.config, spec.mlp_output_norm)),
      attention_dropout_(model.config.residual_dropout, dropout_site(number, DropoutSite::kAttention),
                         model.config.residual_scale),
      mlp_dropout_(model.config.residual_dropout, dropout_site(number, DropoutSite::kMlp), model.config.residual_scale),
      is_parallel_(model.config.parallel_residual) {}

Layer::Kept::Kept(const ModelContext& model, const PassShape& shape, const Layer& layer)
    : normed(room_for(layer.input_norm_, model, shape)),
      attention_out(room_for(layer.attention_output_norm_, model, shape)),
      middle(model.tensor(shape.rows(), model.config.hidden_size)),
      middle_normed(room_for(layer.middle_norm_, model, shape)),
      mlp_out(room_for(layer.mlp_output_norm_, model, shape)),
      input_norm(kept_by(layer.input_norm_, model, shape)),
      attention_output_norm(kept_by(layer.attention_output_norm_, model, shape)),
      middle_norm(kept_by(layer.middle_norm_, model, shape)),
      mlp_output_norm(kept_by(layer.mlp_output_norm_, model, shape)),
      attention(model, shape, layer.attention_),
      mlp(layer.mlp_->make_kept(model, shape)) {}

// (1 + norms of a layer) · M·row(D), plus the bytes of norms, attention and MLP
std::size_t Layer::Kept::num_bytes() const {
  return bytes_of(normed, attention_out, middle, middle_normed, mlp_out, input_norm, attention_output_norm, middle_norm,
                  mlp_output_norm, attention, *mlp);
}

Layer::Work::Work(const ModelContext& model, const PassShape& shape, const Layer& layer)
    : stream(model.tensor(shape.rows(), model.config.hidden_size)),
      normed(model.tensor(shape.rows(), model.config.hidden_size)),
      attention(model, shape, layer.attention_),
      mlp(layer.mlp_->make_work(model, shape, attention.qkv.operand)) {
  const bool changes_outputs = layer.mlp_output_norm_ || layer.is_parallel_ || model.config.residual_dropout > 0 ||
                               model.config.residual_scale != 1;
  if (changes_outputs) kept = model.tensor(shape.rows(), model.config.hidden_size);
}

// 2·M·row(D), or with residual dropout, residual scale, norms of outputs or a parallel residual 3·M·row(D), plus the
// bytes of norm, attention and MLP
std::size_t Layer::Work::num_bytes() const { return bytes_of(stream, normed, kept, norm, attention, *mlp); }

void Layer::request_forward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests) {
  for (Norm* norm : {input_norm_.get(), attention_output_norm_.get(), middle_norm_.get(), mlp_output_norm_.get()}) {
    if (norm != nullptr) norm->bind(params);
  }
  attention_.request_forward(model, params, requests);
  mlp_->request_forward(model, params, requests);
}

void Layer::request_backward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests) {
  attention_.request_backward(model, params, requests);
  mlp_->request_backward(model, params, requests);
}

void Layer::forward(const ModelContext& model, const Pass& pass, const Residual& residual, Kept& kept,
                    const Matrix& added) const {
  const auto here = [&](const Tensor& tensor) { return tensor.first_rows(pass.rows()); };
  const Matrix input = residual.delta.data == nullptr ? residual.x : residual.sum, middle = here(kept.middle);
  if (input_norm_)
    input_norm_->forward(model, residual, here(kept.normed), kept.input_norm);
  else
    add_up(model, residual);
  const Matrix attended = attention_output_norm_ ? here(kept.attention_out) : added;
  attention_.forward(model, pass, input_norm_ ? here(kept.normed) : input, attended, kept.attention);
  if (attention_output_norm_)
    attention_output_norm_->forward(model, {attended, {}, {}}, added, kept.attention_output_norm);
  attention_dropout_.forward(model, pass, added);
  const Residual sum{input, added, middle};
  if (!middle_norm_ || is_parallel_) add_up(model, sum);
  if (middle_norm_)
    middle_norm_->forward(model, is_parallel_ ? Residual{input, {}, {}} : sum, here(kept.middle_normed),
                          kept.middle_norm);
  mlp_->activate(model, pass, middle_norm_ ? here(kept.middle_normed) : middle, *kept.mlp);
}

void Layer::project(const ModelContext& model, const Pass& pass, Kept& kept, const Matrix& added) const {
  const Matrix out = mlp_output_norm_ ? kept.mlp_out.first_rows(pass.rows()) : added;
  mlp_->project(model, pass, (middle_norm_ ? kept.middle_normed : kept.middle).first_rows(pass.rows()), *kept.mlp, out);
  if (mlp_output_norm_) mlp_output_norm_->forward(model, {out, {}, {}}, added, kept.mlp_output_norm);
  mlp_dropout_.forward(model, pass, added);
}

void Layer::backward(const ModelContext& model, const Pass& pass, const Matrix& input, Kept& kept, Work& work,
                     GradSink& sink) const {
  const auto here = [&](const Tensor& tensor) { return tensor.first_rows(pass.rows()); };
  const Matrix stream = here(work.stream), normed = here(work.normed), room = here(work.kept);
  // From the stream's gradient to that of an output; a norm has `normed` free for what dropout leaves.
  const auto of_output = [&](const Dropout& dropout, const std::unique_ptr<Norm>& norm, const Tensor& out,
                             const Norm::Kept& norm_kept) {
    const Matrix dout = dropout.backward(model, pass, stream, norm ? normed : room);
    if (!norm) return dout;
    norm->backward(model, {dout, here(out), {}, room}, norm_kept, work.norm, sink);
    return room;
  };
  // `normed` is the gradient of what attention or the MLP read: a norm's output, or the stream.
  const auto add_to_stream = [&](const std::unique_ptr<Norm>& norm, const Matrix& x, const Norm::Kept& norm_kept) {
    if (norm)
      norm->backward(model, {normed, x, stream, stream}, norm_kept, work.norm, sink);
    else
      add(model.ctx, normed, stream);
  };
  const Matrix middle = here(kept.middle);
  const Matrix dmlp = of_output(mlp_dropout_, mlp_output_norm_, kept.mlp_out, kept.mlp_output_norm);
  mlp_->backward(model, pass, {middle_norm_ ? here(kept.middle_normed) : middle, dmlp, normed}, *kept.mlp, *work.mlp,
                 sink);
  const auto of_attention = [&] {
    return of_output(attention_dropout_, attention_output_norm_, kept.attention_out, kept.attention_output_norm);
  };
  Matrix dattention;
  if (is_parallel_) {
    // The MLP read the layer's input, so its gradient is not part of that of attention's output.
    dattention = of_attention();
    if (dattention.data == stream.data) scale(model.ctx, 1, stream, dattention = room);
    add_to_stream(middle_norm_, input, kept.middle_norm);
  } else {
    add_to_stream(middle_norm_, middle, kept.middle_norm);
    dattention = of_attention();
  }
  attention_.backward(model, pass, {input_norm_ ? here(kept.normed) : input, dattention, normed}, kept.attention,
                      work.attention, sink);
  add_to_stream(input_norm_, input, kept.input_norm);
}

}  // namespace zerofleet
