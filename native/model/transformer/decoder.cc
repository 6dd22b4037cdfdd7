#include "model/transformer/decoder.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "model/layers/key_value_cache.h"
#include "model/layers/norm.h"
#include "model/layers/rotations.h"
#include "model/layers/token_embedding.h"
#include "model/layers/transit.h"
#include "model/transformer/bound_params.h"
#include "model/transformer/layer_stack.h"
#include "model/transformer/loss_head.h"

namespace zerofleet {
namespace {

constexpr std::int64_t kChunkTokens = 64;  // a prompt passes through the layers in pieces of this many tokens

const ModelConfig& checked(const ModelConfig& config, std::int64_t capacity) {
  validate(config);
  require(capacity >= 1 && capacity <= config.max_position_embeddings, "invalid_argument",
          "a sequence of up to " + std::to_string(capacity) + " tokens; the model takes 1 to " +
              std::to_string(config.max_position_embeddings));
  return config;
}

}  // namespace

KeyValueCache::KeyValueCache(const ModelContext& model, std::int64_t capacity) {
  for (std::int64_t layer = 0; layer < model.config.num_hidden_layers; ++layer) {
    keys.push_back(model.tensor(capacity, model.config.key_value_size()));
    values.push_back(model.tensor(capacity, model.config.key_value_size()));
  }
}

struct Decoder::State {
  State(const Context& context, const ModelConfig& config, DType dtype, std::int64_t capacity)
      : table(config),
        scratch(context),
        rotations(rotations_of(context, config, capacity)),
        model{context, config, dtype, &scratch, rotations ? &*rotations : nullptr, table.layout},
        head(model, 1),
        embedding(model, table),
        layers(model, {1, std::min(kChunkTokens, capacity)}, table, true),
        norm(make_norm(config, table.norm)),
        norm_kept(norm->make_kept(model, std::min(kChunkTokens, capacity))),
        cache(model, capacity),
        tokens_upload(context, std::min(kChunkTokens, capacity)),
        positions_upload(context, std::min(kChunkTokens, capacity)),
        added(model.tensor(std::min(kChunkTokens, capacity), config.hidden_size)),
        last(model.tensor(std::min(kChunkTokens, capacity), config.hidden_size)),
        last_normed(model.tensor(std::min(kChunkTokens, capacity), config.hidden_size)) {}

  ParamTable table;
  Scratch scratch;
  std::optional<RopeTable> rotations;
  ModelContext model;
  LossHead head;
  TokenEmbedding embedding;
  LayerStack layers;
  std::unique_ptr<Norm> norm;
  Norm::Kept norm_kept;
  KeyValueCache cache;
  IndexUpload tokens_upload, positions_upload;  // (chunk)
  BoundParams params;
  Tensor added, last, last_normed;  // (chunk, D) as in Transformer
  bool packed = false;

  void run_chunk(std::span<const std::int32_t> tokens);
};

void Decoder::State::run_chunk(std::span<const std::int32_t> tokens) {
  const auto rows = static_cast<std::int64_t>(tokens.size());
  std::vector<std::int32_t> positions(tokens.size());
  std::iota(positions.begin(), positions.end(), static_cast<std::int32_t>(cache.length));
  Pass pass{{1, rows}, positions_upload.upload(model.ctx, positions), {}, nullptr};
  pass.cache = &cache;
  const Matrix room = last.first_rows(rows), delta = added.first_rows(rows);
  Residual stream = embedding.forward(model, pass, tokens_upload.upload(model.ctx, tokens), layers.input(rows), room, delta);
  stream = layers.forward(model, pass, stream, delta);
  stream.sum = room;
  norm->forward(model, stream, last_normed.first_rows(rows), norm_kept);
  cache.length += rows;
}

Decoder::Decoder(const Context& context, const ModelConfig& config, DType dtype, std::int64_t capacity)
    : state_(std::make_unique<State>(context, checked(config, capacity), dtype, capacity)) {}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

void Decoder::bind_params(std::span<const std::byte* const> params, std::span<const QuantizedMatrix* const> quantized) {
  state_->params.bind(state_->table.specs, {params, quantized});
  state_->packed = false;
}

void Decoder::params_changed() {
  State& s = *state_;
  require(!s.params.empty(), "invalid_argument", "params_changed() before bind_params()");
  const ParamPointers params = s.params.pointers();
  s.layers.pack_forward(s.model, params);
  s.embedding.bind(params);
  s.norm->bind(params);
  s.head.pack(s.model, s.params[s.table.head]);
  s.packed = true;
  clear();
}

std::int64_t Decoder::capacity() const { return state_->cache.capacity(); }
std::int64_t Decoder::length() const { return state_->cache.length; }
void Decoder::clear() { state_->cache.length = 0; }

void Decoder::append(std::span<const std::int32_t> tokens, std::span<float> last_logits) {
  State& s = *state_;
  require(s.packed, "invalid_argument", "params_changed() must be called before the first token");
  require(static_cast<std::int64_t>(last_logits.size()) == s.model.config.vocab_size, "invalid_argument",
          "append() fills one logit per token of the vocabulary");
  const auto count = static_cast<std::int64_t>(tokens.size()), room = capacity() - length();
  if (count < 1 || count > room) {
    clear();
    throw Error("invalid_argument", "append() of " + std::to_string(count) + " tokens with room for " + std::to_string(room));
  }
  const std::int64_t chunk = s.last.view().rows;
  std::int64_t rows = 0;
  try {
    for (std::int64_t first = 0; first < count; first += rows) {
      rows = std::min(chunk, count - first);
      s.run_chunk(tokens.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(rows)));
    }
  } catch (...) {
    clear();
    throw;
  }
  const Matrix normed = s.last_normed.view();
  s.head.logits(s.model, {normed.at(rows - 1, 0), normed.dtype, 1, normed.cols, normed.stride}, last_logits);
}

}  // namespace zerofleet
