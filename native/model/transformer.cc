#include "model/transformer.h"

#include <chrono>
#include <string>

#include "core/error.h"
#include "kernels/embedding.h"
#include "model/layer_stack.h"
#include "model/loss_head.h"
#include "model/norm.h"

namespace zerofleet {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

const ModelConfig& checked(const ModelConfig& config, std::int64_t batch, std::int64_t length) {
  validate(config);
  require(batch >= 1 && length >= 1 && length <= config.max_position_embeddings, "invalid_argument",
          "a micro-batch of " + std::to_string(batch) + " sequences of " + std::to_string(length) +
              " tokens; the model takes 1 to " + std::to_string(config.max_position_embeddings) + " tokens");
  return config;
}

}  // namespace

struct Transformer::State {
  State(const Context& context, const ModelConfig& config, DType dtype, const PassShape& pass,
        const TransformerOptions& options)
      : table(config),
        scratch(context),
        rotations(context, pass.length, config.head_dim, config.rope_theta),
        model{context, config, dtype, &scratch, &rotations, table.layout},
        shape(pass),
        head(model, pass.rows()),
        layers(model, pass, table, options.checkpoint_activations),
        norm(make_norm(config, table.norm)),
        norm_kept(norm->make_kept(pass.rows())),
        added(model.tensor(pass.rows(), config.hidden_size)),
        last(model.tensor(pass.rows(), config.hidden_size)),
        last_normed(model.tensor(pass.rows(), config.hidden_size)) {}

  ParamTable table;
  Scratch scratch;
  RopeTable rotations;
  ModelContext model;
  PassShape shape;
  LossHead head;
  LayerStack layers;
  std::unique_ptr<Norm> norm;  // after the last layer
  Norm::Kept norm_kept;
  std::vector<const std::byte*> params;
  Tensor added;              // (M, D) what a block adds to the residual stream next
  Tensor last, last_normed;  // (M, D) the residual stream after all layers
  Tensor vocab_gradient;     // (V, D) fp32: of the head, then of the embedding
  bool forward_packed = false;
  bool backward_packed = false;
  double forward_seconds = 0;
  double backward_seconds = 0;

  void check_pass(std::span<const std::int32_t> tokens, std::span<const std::int32_t> targets) const;
  void run_layers(const PassShape& pass, std::span<const std::int32_t> tokens);
  void prepare_backward();
  void run_backward(std::span<const std::int32_t> tokens, const GradCallback& on_grad);
};

void Transformer::State::check_pass(std::span<const std::int32_t> tokens, std::span<const std::int32_t> targets) const {
  const auto rows = static_cast<std::size_t>(shape.rows());
  require(tokens.size() == rows && targets.size() == rows, "invalid_argument",
          "a pass takes " + std::to_string(rows) + " tokens and targets");
  for (const std::int32_t target : targets) {
    if (target == -100 || (target >= 0 && target < model.config.vocab_size)) continue;
    throw Error("token_out_of_vocab", "target " + std::to_string(target) + " is neither in the vocabulary nor -100");
  }
}

void Transformer::State::run_layers(const PassShape& pass, std::span<const std::int32_t> tokens) {
  require(forward_packed, "invalid_argument", "params_changed() must be called before the first pass");
  const std::int64_t rows = pass.rows(), hidden = model.config.hidden_size;
  embedding(model.ctx, {params[table.embed], model.dtype, model.config.vocab_size, hidden, hidden}, tokens,
            layers.input(rows));
  Residual stream = layers.forward(model, pass, added.first_rows(rows));
  stream.sum = last.first_rows(rows);
  norm->forward(model, stream, last_normed.first_rows(rows), norm_kept);
}

void Transformer::State::prepare_backward() {
  if (vocab_gradient.num_bytes() == 0) {
    vocab_gradient =
        Tensor(model.ctx, DType::kF32, model.config.vocab_size, model.config.hidden_size, Tensor::Rows::kContiguous);
  }
  if (backward_packed) return;
  layers.pack_backward(model, params);
  head.pack_backward(model, params[table.head]);
  backward_packed = true;
}

// On entry work().normed is the gradient of last_normed and vocab_gradient that of the head's matrix.
void Transformer::State::run_backward(std::span<const std::int32_t> tokens, const GradCallback& on_grad) {
  Layer::Work& work = layers.work();
  const bool tied = model.config.tie_word_embeddings;
  if (!tied) on_grad(table.head, vocab_gradient.floats());
  norm->backward(model, {work.normed.view(), last.view(), {}, work.stream.view()}, norm_kept, work.norm, on_grad);
  layers.backward(model, shape, added.view(), on_grad);
  embedding_backward(model.ctx, tokens, work.stream.view(), vocab_gradient.view(), tied);
  on_grad(table.embed, vocab_gradient.floats());
}

Transformer::Transformer(const Context& context, const ModelConfig& config, DType compute_dtype,
                         std::int64_t micro_batch_size, std::int64_t sequence_length, const TransformerOptions& options)
    : state_(std::make_unique<State>(context, checked(config, micro_batch_size, sequence_length), compute_dtype,
                                     PassShape{micro_batch_size, sequence_length}, options)) {}
Transformer::~Transformer() = default;
Transformer::Transformer(Transformer&&) noexcept = default;
Transformer& Transformer::operator=(Transformer&&) noexcept = default;

void Transformer::bind_params(std::span<const std::byte* const> params) {
  require(params.size() == state_->table.specs.size(), "invalid_argument",
          "bind_params: " + std::to_string(params.size()) + " pointers for " + std::to_string(state_->table.specs.size()) +
              " parameters");
  state_->params.assign(params.begin(), params.end());
  state_->forward_packed = false;
}

void Transformer::params_changed() {
  State& s = *state_;
  require(!s.params.empty(), "invalid_argument", "params_changed() before bind_params()");
  s.layers.pack_forward(s.model, s.params);
  s.norm->bind(s.params);
  s.head.pack_forward(s.model, s.params[s.table.head]);
  s.forward_packed = true;
  s.backward_packed = false;
}

LeafResult Transformer::forward_backward(std::span<const std::int32_t> tokens, std::span<const std::int32_t> targets,
                                         float grad_scale, const GradCallback& on_grad) {
  State& s = *state_;
  s.check_pass(tokens, targets);
  const auto start = Clock::now();
  s.run_layers(s.shape, tokens);
  const double layers_seconds = seconds_since(start);
  s.prepare_backward();
  const auto head_start = Clock::now();
  const LossHead::Gradients to{s.layers.work().normed.view(), s.vocab_gradient.view(), grad_scale};
  const LeafResult result = s.head.run(s.model, s.last_normed.view(), targets, &to);
  s.forward_seconds = layers_seconds + seconds_since(head_start) - s.head.backward_seconds();
  s.run_backward(tokens, on_grad);
  s.backward_seconds = seconds_since(start) - s.forward_seconds;
  return result;
}

LeafResult Transformer::forward(std::span<const std::int32_t> tokens, std::span<const std::int32_t> targets) {
  State& s = *state_;
  s.check_pass(tokens, targets);
  const auto start = Clock::now();
  s.run_layers(s.shape, tokens);
  const LeafResult result = s.head.run(s.model, s.last_normed.view(), targets, nullptr);
  s.forward_seconds = seconds_since(start);
  s.backward_seconds = 0;
  return result;
}

void Transformer::logits(std::span<const std::int32_t> tokens, std::span<float> last_logits) {
  State& s = *state_;
  const auto length = static_cast<std::int64_t>(tokens.size());
  require(length >= 1 && length <= s.shape.length, "invalid_argument",
          "logits() takes 1 to " + std::to_string(s.shape.length) + " tokens");
  require(static_cast<std::int64_t>(last_logits.size()) == s.model.config.vocab_size, "invalid_argument",
          "logits() fills one value per token of the vocabulary");
  s.run_layers({1, length}, tokens);
  const Matrix normed = s.last_normed.view();
  s.head.logits(s.model, {normed.at(length - 1, 0), normed.dtype, 1, normed.cols, normed.stride}, last_logits);
}

std::size_t Transformer::packed_bytes() const { return state_->head.packed_bytes() + state_->layers.packed_bytes(); }

// Besides the layers and the head, with the names of block.h and T the sequence length: 3·M·row(D) + 4·M for what
// follows the layers, 4·T·head_dim for the rotations, from the first backward on 4·V·D, and scratch memory: per thread
// the larger of what attention_backward.cc and gemm.cc say.
std::size_t Transformer::activation_bytes() const {
  const State& s = *state_;
  return bytes_of(s.added, s.last, s.last_normed, s.norm_kept, s.rotations, s.vocab_gradient, s.scratch) +
         s.head.activation_bytes() + s.layers.activation_bytes();
}

double Transformer::forward_seconds() const { return state_->forward_seconds; }
double Transformer::backward_seconds() const { return state_->backward_seconds; }

}  // namespace zerofleet
