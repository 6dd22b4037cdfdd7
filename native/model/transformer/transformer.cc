#include "model/transformer/transformer.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "core/error.h"
#include "kernels/common/backend.h"
#include "model/common/rotations.h"
#include "model/common/transit.h"
#include "model/layers/linear_adapter.h"
#include "model/layers/norm.h"
#include "model/layers/token_embedding.h"
#include "model/mlp/router_tally.h"
#include "model/mlp/row_exchange.h"
#include "model/transformer/bound_params.h"
#include "model/transformer/callback_sink.h"
#include "model/transformer/layer_stack.h"
#include "model/transformer/leaf_check.h"
#include "model/transformer/leaf_head.h"
#include "model/transformer/shared_operands.h"
#include "model/transformer/trimmed_leaf.h"

namespace zerofleet {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::int64_t max_rows_of(const Context& context, const TransformerOptions& options) {
  const bool by_device = options.checkpoint_activations && options.max_rows_at_once == 0;
  return by_device ? backend_of(context).max_rows_at_once : options.max_rows_at_once;
}

}  // namespace

struct Transformer::State {
  State(const Context& context, const ModelConfig& config, DType dtype, const PassShape& pass_shape,
        const TransformerOptions& options);

  ParamTable table;
  std::shared_ptr<Scratch> scratch;
  std::optional<RopeTable> rotations, local_rotations;
  std::optional<RowExchange> row_exchange;  // to experts that other ranks hold
  ModelContext model;
  PassShape shape;
  LeafHead head;
  TokenEmbedding embedding;
  LayerStack layers;
  std::unique_ptr<Norm> norm;  // after the last layer
  Norm::Kept norm_kept;
  BoundParams params;
  RouterTally load;                                               // of the last forward, in models with experts
  std::vector<std::int32_t> positions;                            // (M) of the leaf's tokens, where blocks ask
  IndexUpload tokens_upload, positions_upload, documents_upload;  // (M)
  IndexUpload lengths_upload;                                     // (B)
  Tensor dropped;                                                 // as in ModelContext, or empty
  Tensor added;                                                   // (M, D) the next addend of the residual stream
  Tensor last, last_normed;                                       // (M, D) the residual stream after all layers
  std::optional<TokenEmbedding::Work> embedding_work;             // made by the first backward
  bool forward_packed = false;
  bool backward_packed = false;
  double forward_seconds = 0;
  double backward_seconds = 0;

  TrimmedLeaf checked_leaf(const LeafInput& leaf) const;
  Pass pass_of(const TrimmedLeaf& leaf, const LeafKey* dropout);
  void run_layers(Pass pass, const Indices& tokens, Adapters adapters);
  double aux_loss() const { return model.config.router_aux_loss_coef * load_balancing_loss(load.load()); }
  void prepare_backward();
  void run_backward(const Pass& pass, const Indices& tokens, GradSink& sink);
  /// `added` has room until the backward.
  LeafHead::Input head_input(const TrimmedLeaf& leaf) const {
    return {leaf, last_normed.first_rows(leaf.shape().rows()), added.view()};
  }
  void forward(const LeafInput& leaf, Adapters adapters);
  LeafResult forward_backward(const LeafInput& leaf, const LeafHead::RowDerivatives& derivatives,
                              const GradScale& scale, GradSink& sink);
};

Transformer::State::State(const Context& context, const ModelConfig& config, DType dtype, const PassShape& pass_shape,
                          const TransformerOptions& options)
    : table(config),
      scratch(std::make_shared<Scratch>(context)),
      rotations(rotations_of(context, config, pass_shape.length)),
      local_rotations(local_rotations_of(context, config, pass_shape.length)),
      row_exchange(options.experts == nullptr
                       ? std::nullopt
                       : std::make_optional<RowExchange>(context, *options.experts, config.num_experts)),
      model{context,
            config,
            dtype,
            scratch.get(),
            pointer_to(rotations),
            table.layout,
            pointer_to(row_exchange),
            options.weights,
            options.weight_gradients,
            FrozenParams(table.specs, options.frozen),
            &dropped,
            pointer_to(local_rotations),
            true,
            PackedWords::kFastest,
            max_rows_of(context, options)},
      shape(pass_shape),
      head(model, shape),
      embedding(model, table),
      layers(model, shape, table, options.checkpoint_activations, make_layers(model, table)),
      norm(make_norm(config, table.norm)),
      norm_kept(norm->make_kept(model, shape.rows())),
      load(context, config.num_experts),
      positions(static_cast<std::size_t>(shape.rows())),
      tokens_upload(context, shape.rows()),
      positions_upload(context, shape.rows()),
      documents_upload(context, shape.rows()),
      lengths_upload(context, shape.batch),
      dropped(room_for_dropped(model, shape.rows())),
      added(model.tensor(shape.rows(), config.hidden_size)),
      last(model.tensor(shape.rows(), config.hidden_size)),
      last_normed(model.tensor(shape.rows(), config.hidden_size)) {}

TrimmedLeaf Transformer::State::checked_leaf(const LeafInput& leaf) const {
  check_leaf(leaf, shape, model.config.vocab_size);
  const bool own = backend_of(model.ctx).sequences_keep_lengths;
  return TrimmedLeaf(leaf, shape, model.config.num_experts > 0,
                     own ? TrimmedLeaf::Lengths::kOwn : TrimmedLeaf::Lengths::kCommon);
}

Pass Transformer::State::pass_of(const TrimmedLeaf& leaf, const LeafKey* dropout) {
  const LeafInput& input = leaf.input();
  Pass pass{leaf.shape(), {}, {}, dropout};
  if (table.positions || !input.document_starts.empty() || !pass.shape.ends.empty()) {
    const auto of_leaf = std::span(positions).first(static_cast<std::size_t>(pass.rows()));
    leaf.put_positions(of_leaf);
    pass.positions = positions_upload.upload(model.ctx, of_leaf);
    pass.document_starts = documents_upload.upload(model.ctx, input.document_starts);
  }
  if (model.config.num_experts > 0) pass.lengths = lengths_upload.upload(model.ctx, input.lengths);
  return pass;
}

void Transformer::State::run_layers(Pass pass, const Indices& tokens, Adapters adapters) {
  require(forward_packed, "invalid_argument", "params_changed() must be called before the first pass");
  const std::int64_t rows = pass.rows();
  model.adapters_on = adapters == Adapters::kOn;
  load.clear(model.ctx);
  pass.load = &load;
  const Matrix room = last.first_rows(rows), delta = added.first_rows(rows);
  Residual stream = embedding.forward(model, pass, tokens, layers.input(rows), room, delta);
  stream = layers.forward(model, pass, stream, delta);
  stream.sum = last.first_rows(rows);
  norm->forward(model, stream, last_normed.first_rows(rows), norm_kept);
  load.fetch(model.ctx);
}

void Transformer::State::prepare_backward() {
  if (!embedding_work) embedding_work.emplace(model, table, shape.rows());
  if (backward_packed) return;
  layers.pack_backward(model);
  backward_packed = true;
}

// On entry work().normed is the gradient of last_normed and embedding_work->dtokens that of the head's matrix.
void Transformer::State::run_backward(const Pass& pass, const Indices& tokens, GradSink& sink) {
  Layer::Work& work = layers.work();
  const std::int64_t rows = pass.rows();
  const Matrix normed = work.normed.first_rows(rows), stream = work.stream.first_rows(rows);
  if (!model.config.tie_word_embeddings) model.emit(table.head, embedding_work->dtokens.floats(), sink);
  norm->backward(model, {normed, last.first_rows(rows), {}, stream}, norm_kept, work.norm, sink);
  layers.backward(model, pass, added.first_rows(rows), sink);
  embedding.backward(model, pass, tokens, stream, *embedding_work, sink);
}

Transformer::Transformer(const Context& context, const ModelConfig& config, DType compute_dtype,
                         std::int64_t micro_batch_size, std::int64_t sequence_length, const TransformerOptions& options)
    : state_(std::make_unique<State>(context, checked_model(config, {micro_batch_size, sequence_length}), compute_dtype,
                                     PassShape{micro_batch_size, sequence_length}, options)) {}
Transformer::~Transformer() = default;
Transformer::Transformer(Transformer&&) noexcept = default;
Transformer& Transformer::operator=(Transformer&&) noexcept = default;

void Transformer::bind_params(std::span<const std::byte* const> params,
                              std::span<const QuantizedMatrix* const> quantized) {
  state_->params.bind(state_->table.specs, {params, quantized});
  state_->forward_packed = false;
}

void Transformer::params_changed() {
  State& s = *state_;
  require(!s.params.empty(), "invalid_argument", "params_changed() before bind_params()");
  const ParamPointers params = s.params.pointers();
  s.layers.pack_forward(s.model, params);
  s.embedding.bind(params);
  s.norm->bind(params);
  s.head.pack(s.model, s.params[s.table.head]);
  s.forward_packed = true;
  s.backward_packed = false;
}

LeafResult Transformer::State::forward_backward(const LeafInput& leaf, const LeafHead::RowDerivatives& derivatives,
                                                const GradScale& scale, GradSink& sink) {
  const TrimmedLeaf needed = checked_leaf(leaf);
  const auto start = Clock::now();
  Pass pass = pass_of(needed, &leaf.key);
  const Indices tokens = tokens_upload.upload(model.ctx, needed.input().tokens);
  run_layers(pass, tokens, Adapters::kOn);
  const double layers_seconds = seconds_since(start);
  prepare_backward();
  const auto head_start = Clock::now();
  const Matrix dhead = model.trains(table.head) ? embedding_work->dtokens.view() : Matrix{};
  head.forward_backward(model, head_input(needed), {layers.work().normed.first_rows(pass.rows()), dhead, scale.loss},
                        derivatives);
  forward_seconds = layers_seconds + seconds_since(head_start) - head.backward_seconds();
  const double aux_scale = model.config.router_aux_loss_coef * static_cast<double>(scale.aux_loss);
  pass.dprobs = load.gradient(model.ctx, aux_scale);
  run_backward(pass, tokens, sink);
  LeafResult result = head.result();
  result.aux_loss = aux_loss();
  backward_seconds = seconds_since(start) - forward_seconds;
  return result;
}

void Transformer::State::forward(const LeafInput& leaf, Adapters adapters) {
  require(adapters == Adapters::kOn || model.config.has_base(), "invalid_argument",
          "a model without adapters, or with modules_to_save, does not hold the base beside what it trains");
  const TrimmedLeaf needed = checked_leaf(leaf);
  const auto start = Clock::now();
  run_layers(pass_of(needed, nullptr), tokens_upload.upload(model.ctx, needed.input().tokens), adapters);
  head.forward(model, head_input(needed));
  forward_seconds = seconds_since(start);
  backward_seconds = 0;
}

LeafResult Transformer::forward_backward(const LeafInput& leaf, const GradScale& scale, GradSink& sink) {
  return state_->forward_backward(leaf, {}, scale, sink);
}

LeafResult Transformer::forward_backward(const LeafInput& leaf, const SequenceObjective& objective,
                                         const GradScale& scale, GradSink& sink) {
  const auto derivatives = [&](const LeafHead& head) { return head.derivatives_of(objective); };
  return state_->forward_backward(leaf, derivatives, scale, sink);
}

LeafResult Transformer::forward_backward(const LeafInput& leaf, const TargetObjective& objective,
                                         const GradScale& scale, GradSink& sink) {
  const auto derivatives = [&](const LeafHead& head) { return head.derivatives_of(objective); };
  return state_->forward_backward(leaf, derivatives, scale, sink);
}

LeafResult Transformer::forward_backward(const LeafInput& leaf, const GradScale& scale, const GradCallback& on_grad) {
  CallbackSink sink(on_grad);
  return forward_backward(leaf, scale, sink);
}

LeafResult Transformer::forward(const LeafInput& leaf) {
  State& s = *state_;
  s.forward(leaf, Adapters::kOn);
  LeafResult result = s.head.result();
  result.aux_loss = s.aux_loss();
  return result;
}

std::vector<float> Transformer::log_probs(const LeafInput& leaf, Adapters adapters) {
  state_->forward(leaf, adapters);
  return state_->head.log_probs();
}

std::vector<SequenceScore> Transformer::scores(const LeafInput& leaf, Adapters adapters) {
  state_->forward(leaf, adapters);
  return state_->head.scores();
}

SharedOperands Transformer::operands() const {
  return {state_->layers.layers(), state_->head.packed(), state_->scratch};
}
std::size_t Transformer::packed_bytes() const { return state_->head.packed_bytes() + state_->layers.packed_bytes(); }

// Besides the layers and the head, with the names of block.h and T the sequence length:
// - 3·M·row(D) and a norm for what follows the layers;
// - 4·T·rotated() for rotations, twice with local ones;
// - 4·M for positions;
// - from the first backward on the embedding's work space;
// - with dropout before adapters the larger of M·row(max(D, Q)) and R·row(I);
// - rows in transit to experts elsewhere;
// - scratch memory: per thread the larger of what attention_backward.cc and gemm.cc say.
std::size_t Transformer::activation_bytes() const {
  const State& s = *state_;
  return bytes_of(s.added, s.last, s.last_normed, s.dropped, s.norm_kept, *s.scratch) + s.head.activation_bytes() +
         s.layers.activation_bytes() + s.positions.size() * sizeof(std::int32_t) +
         (s.rotations ? s.rotations->num_bytes() : 0) + (s.local_rotations ? s.local_rotations->num_bytes() : 0) +
         (s.row_exchange ? s.row_exchange->num_bytes() : 0) + (s.embedding_work ? s.embedding_work->num_bytes() : 0);
}

double Transformer::forward_seconds() const { return state_->forward_seconds; }
double Transformer::backward_seconds() const { return state_->backward_seconds; }

}  // namespace zerofleet
