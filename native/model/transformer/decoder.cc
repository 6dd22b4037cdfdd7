#include "model/transformer/decoder.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "kernels/embedding/embedding.h"
#include "model/common/rotations.h"
#include "model/common/transit.h"
#include "model/layers/kv_cache.h"
#include "model/layers/norm.h"
#include "model/layers/served_adapter.h"
#include "model/layers/token_embedding.h"
#include "model/transformer/bound_params.h"
#include "model/transformer/layer_stack.h"
#include "model/transformer/loss_head.h"
#include "model/transformer/shared_operands.h"

namespace zerofleet {
namespace {

const ModelConfig& checked(const ModelConfig& config, const Decoder::Limits& limits) {
  validate(config);
  require(limits.max_rows >= 1 && limits.max_sequences >= 1 && limits.num_pages >= 1 && limits.max_length >= 1 &&
              limits.max_length <= config.max_position_embeddings,
          "invalid_argument",
          "a decoder of sequences of up to " + std::to_string(limits.max_length) + " tokens; the model takes 1 to " +
              std::to_string(config.max_position_embeddings) + ", and rows, sequences and pages must be at least 1");
  return config;
}

/// Products of CPUs read packed copies of matrices, also an embedding that is tied to the output projection.
std::vector<bool> copied_params(const Context& context, const ParamTable& table) {
  std::vector<bool> copied(table.specs.size(), false);
  if (context.device.kind != DeviceKind::kCpu) return copied;
  copied[table.head] = true;
  for (const LayerSpec& layer : table.layers) {
    for (const LinearSpec& matrix : matrices_of(layer)) copied[matrix.weight] = true;
  }
  return copied;
}

}  // namespace

struct Decoder::State {
  State(const Context& context, const ModelConfig& config, DType dtype, const Limits& given,
        const SharedOperands* shared)
      : limits(given),
        table(config),
        has_packed_head(shared != nullptr),
        scratch(shared ? shared->scratch : std::make_shared<Scratch>(context)),
        rotations(rotations_of(context, config, given.max_length, RopeTable::Lengths::kOwn)),
        local_rotations(local_rotations_of(context, config, given.max_length)),
        model(model_context(context, config, dtype)),
        head(model, given.max_sequences, {given.max_sequences, given.max_sequences}, shared ? shared->head : nullptr),
        embedding(model, table),
        layers(model, {1, given.max_rows}, table, true, shared ? shared->layers : make_layers(model, table)),
        norm(make_norm(config, table.norm)),
        norm_kept(norm->make_kept(model, given.max_rows)),
        cache(model, given.num_pages + 1),
        tokens_upload(context, given.max_rows),
        positions_upload(context, given.max_rows),
        angles_upload(context, given.max_rows),
        tables_upload(context, given.max_rows),
        last_upload(context, given.max_sequences),
        ranges_upload(context, 2 * given.max_rows),
        added(model.tensor(given.max_rows, config.hidden_size)),
        stream(model.tensor(given.max_rows, config.hidden_size)),
        normed(model.tensor(given.max_rows, config.hidden_size)),
        last(model.tensor(given.max_sequences, config.hidden_size)),
        next(static_cast<std::size_t>(given.max_sequences)) {}

  ModelContext model_context(const Context& context, const ModelConfig& config, DType dtype) {
    ModelContext made{context, config, dtype, scratch.get(), pointer_to(rotations), table.layout};
    made.local_rotations = pointer_to(local_rotations);
    made.packed_words = PackedWords::kSmallest;
    made.frozen = FrozenParams(table.specs, std::vector<bool>(table.specs.size(), true));
    return made;
  }

  Limits limits;
  ParamTable table;
  bool has_packed_head;
  std::shared_ptr<Scratch> scratch;
  std::optional<RopeTable> rotations, local_rotations;
  ModelContext model;
  LossHead head;
  TokenEmbedding embedding;
  LayerStack layers;
  std::unique_ptr<Norm> norm;
  Norm::Kept norm_kept;
  KvCache cache;  // its last page is for rows that only fill up a pass
  IndexUpload tokens_upload, positions_upload, angles_upload, tables_upload, last_upload, ranges_upload;
  std::optional<IndexUpload> pages_upload;  // of the largest size so far
  std::size_t pages_capacity = 0;
  BoundParams params;
  Tensor added, stream, normed;      // (max_rows, D) as in Transformer
  Tensor last;                       // (max_sequences, D) the normed rows that logits are made of
  std::vector<std::int32_t> ranges;  // of rows, by adapter
  std::vector<NextToken> next;
  std::set<int> stale;  // layers, and -1, whose parameters have not been read since they were bound

  /// The rows of a pass.
  struct Rows {
    std::vector<std::int32_t> tokens, positions, tables, pages, last;
    std::vector<std::int32_t> angles;  // rows of the table of rotations
    std::vector<AdaptedRows> adapted;
    void adapt(const SequenceRows& sequence);
  };
  Rows rows_of(std::span<const SequenceRows> sequences) const;
  void check(std::span<const SequenceRows> sequences) const;
  void fill_up(Rows& rows) const;
  /// Computes the pass, and the logits that follow the first `num_logits` of rows.last.
  void run(Rows& rows, std::size_t num_logits);
  Indices upload_pages(std::span<const std::int32_t> numbers);
  void upload_ranges(std::vector<AdaptedRows>& adapted);
};

/// Called before the sequence's rows are appended. Neighbouring sequences of one adapter share a range.
void Decoder::State::Rows::adapt(const SequenceRows& sequence) {
  if (sequence.adapter == nullptr) return;
  const auto begin = std::ssize(tokens), end = begin + std::ssize(sequence.tokens);
  if (!adapted.empty() && adapted.back().adapter == sequence.adapter && adapted.back().end == begin)
    adapted.back().end = end;
  else
    adapted.push_back({sequence.adapter, begin, end});
}

void Decoder::State::check(std::span<const SequenceRows> sequences) const {
  std::int64_t rows = 0, num_logits = 0;
  for (const SequenceRows& sequence : sequences) {
    const std::int64_t count = std::ssize(sequence.tokens), end = sequence.first + count;
    require(count >= 1 && sequence.first >= 0 && end <= limits.max_length, "invalid_argument",
            "a sequence of " + std::to_string(end) + " tokens, of which " + std::to_string(count) +
                " are new; the limit is " + std::to_string(limits.max_length));
    require(std::ssize(sequence.page_table) * kPageTokens >= end, "invalid_argument",
            "a sequence of " + std::to_string(end) + " tokens has too few pages");
    require(std::ranges::all_of(sequence.page_table,
                                [&](std::int32_t page) { return page >= 0 && page < limits.num_pages; }),
            "invalid_argument", "a page that does not exist");
    require(std::ranges::all_of(sequence.tokens,
                                [&](std::int32_t token) { return token >= 0 && token < model.config.vocab_size; }),
            "token_out_of_vocab", "a token of the sequence is outside the vocabulary");
    rows += count;
    num_logits += sequence.needs_logits ? 1 : 0;
  }
  require(rows >= 1 && rows <= limits.max_rows && num_logits <= limits.max_sequences, "invalid_argument",
          std::to_string(rows) + " rows at once, of which " + std::to_string(num_logits) + " sequences need logits");
}

Decoder::State::Rows Decoder::State::rows_of(std::span<const SequenceRows> sequences) const {
  Rows rows;
  for (const SequenceRows& sequence : sequences) {
    const auto page_table = static_cast<std::int32_t>(rows.pages.size());
    const std::int64_t length = std::max(sequence.length, sequence.first + std::ssize(sequence.tokens));
    const auto first_angle = static_cast<std::int32_t>(rotations ? rotations->first_row(length) : 0);
    rows.adapt(sequence);
    rows.pages.insert(rows.pages.end(), sequence.page_table.begin(), sequence.page_table.end());
    for (std::size_t i = 0; i < sequence.tokens.size(); ++i) {
      rows.tokens.push_back(sequence.tokens[i]);
      rows.positions.push_back(static_cast<std::int32_t>(sequence.first + static_cast<std::int64_t>(i)));
      rows.angles.push_back(first_angle + rows.positions.back());
      rows.tables.push_back(page_table);
    }
    if (sequence.needs_logits) rows.last.push_back(static_cast<std::int32_t>(rows.tokens.size()) - 1);
  }
  return rows;
}

/// Pads the pass to max_rows on a CUDA device: see Decoder.
void Decoder::State::fill_up(Rows& rows) const {
  if (model.ctx.device.kind == DeviceKind::kCpu) return;
  const auto count = static_cast<std::size_t>(limits.max_rows);
  rows.tables.resize(count, static_cast<std::int32_t>(rows.pages.size()));
  rows.pages.push_back(static_cast<std::int32_t>(limits.num_pages));
  rows.tokens.resize(count, 0);
  rows.positions.resize(count, 0);
  rows.angles.resize(count, 0);
  if (!rows.last.empty()) rows.last.resize(static_cast<std::size_t>(limits.max_sequences), rows.last.front());
}

Indices Decoder::State::upload_pages(std::span<const std::int32_t> numbers) {
  if (numbers.size() > pages_capacity) {
    pages_capacity = std::max(numbers.size(), 2 * pages_capacity);
    pages_upload.emplace(model.ctx, static_cast<std::int64_t>(pages_capacity));
  }
  return pages_upload->upload(model.ctx, numbers);
}

void Decoder::State::upload_ranges(std::vector<AdaptedRows>& adapted) {
  if (adapted.empty() || model.ctx.device.kind == DeviceKind::kCpu) return;
  ranges.clear();
  for (const AdaptedRows& rows : adapted) {
    ranges.push_back(static_cast<std::int32_t>(rows.begin));
    ranges.push_back(static_cast<std::int32_t>(rows.end));
  }
  const std::int32_t* range = ranges_upload.upload(model.ctx, ranges).on_device();
  for (AdaptedRows& rows : adapted) {
    rows.range = range;
    range += 2;
  }
}

void Decoder::State::run(Rows& all, std::size_t num_logits) {
  const auto rows = static_cast<std::int64_t>(all.tokens.size());
  const Indices positions = positions_upload.upload(model.ctx, all.positions);
  cache.rows = {positions, tables_upload.upload(model.ctx, all.tables), upload_pages(all.pages)};
  Pass pass{{1, rows}, angles_upload.upload(model.ctx, all.angles), {}, nullptr};
  pass.kv_cache = &cache;
  upload_ranges(all.adapted);
  pass.adapted = all.adapted;
  const Matrix room = stream.first_rows(rows), delta = added.first_rows(rows);
  Residual residual =
      embedding.forward(model, pass, tokens_upload.upload(model.ctx, all.tokens), layers.input(rows), room, delta);
  residual = layers.forward(model, pass, residual, delta);
  if (all.last.empty()) return;
  residual.sum = room;
  norm->forward(model, residual, normed.first_rows(rows), norm_kept);
  const Matrix picked = last.first_rows(std::ssize(all.last));
  zerofleet::embedding(model.ctx, normed.first_rows(rows), last_upload.upload(model.ctx, all.last), picked);
  head.next_tokens(model, picked, std::span(next).first(num_logits));
}

Decoder::Decoder(const Context& context, const ModelConfig& config, DType dtype, const Limits& limits,
                 const SharedOperands* shared)
    : state_(std::make_unique<State>(context, checked(config, limits), dtype, limits, shared)),
      copied_(copied_params(context, state_->table)) {}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

void Decoder::bind_params(std::span<const std::byte* const> params, std::span<const QuantizedMatrix* const> quantized) {
  state_->params.bind(state_->table.specs, {params, quantized});
  for (int layer = -1; layer < std::ssize(state_->table.layers); ++layer) state_->stale.insert(layer);
}

void Decoder::params_changed(int layer) {
  State& s = *state_;
  require(!s.params.empty() && layer >= -1 && layer < std::ssize(s.table.layers), "invalid_argument",
          "params_changed() before bind_params(), or of layer " + std::to_string(layer));
  const ParamPointers params = s.params.pointers();
  if (layer >= 0) {
    s.layers.pack_forward(s.model, params, static_cast<std::size_t>(layer));
  } else {
    s.embedding.bind(params);
    s.norm->bind(params);
    if (!s.has_packed_head) s.head.pack(s.model, s.params[s.table.head]);
    if (copied_[s.table.embed]) s.embedding.bind_packed(s.head.packed().get());
  }
  s.stale.erase(layer);
}

void Decoder::params_changed() {
  for (int layer = -1; layer < std::ssize(state_->table.layers); ++layer) params_changed(layer);
}

std::unique_ptr<const ServedAdapter> Decoder::make_adapter(const AdapterConfig& adapter,
                                                           std::span<const std::vector<std::byte>> values) const {
  return std::make_unique<ServedAdapter>(state_->model, adapter, state_->limits.max_rows, values);
}

const Decoder::Limits& Decoder::limits() const { return state_->limits; }
std::int64_t Decoder::vocab_size() const { return state_->model.config.vocab_size; }
std::size_t Decoder::num_bytes() const {
  return state_->cache.num_bytes() + state_->layers.packed_bytes() + state_->head.packed_bytes();
}

// With the names of block.h for M = max_rows, and S = max_sequences:
// - (num_pages + 1) pages of every layer;
// - M·row(D) for the input of all layers, and what one layer keeps;
// - 3·M·row(D), S·row(D), and a norm of M rows;
// - S·row(V) of fp32 + 4·S, and on a CPU 4·S·V for logits;
// - rotations of max_length positions.
std::size_t Decoder::activation_bytes() const {
  const State& s = *state_;
  const bool is_cpu = s.model.ctx.device.kind == DeviceKind::kCpu;
  const std::int64_t host_logits = is_cpu ? 4 * s.limits.max_sequences * vocab_size() : 0;
  return bytes_of(s.cache, s.added, s.stream, s.normed, s.last, s.norm_kept) + s.layers.activation_bytes() +
         s.head.activation_bytes() + static_cast<std::size_t>(host_logits) +
         (s.rotations ? s.rotations->num_bytes() : 0) + (s.local_rotations ? s.local_rotations->num_bytes() : 0);
}

std::span<const NextToken> Decoder::append(std::span<const SequenceRows> sequences) {
  State& s = *state_;
  require(!s.params.empty() && s.stale.empty(), "invalid_argument",
          "params_changed() must be called before the first token");
  s.check(sequences);
  State::Rows rows = s.rows_of(sequences);
  const std::size_t num_logits = rows.last.size();
  s.fill_up(rows);
  s.run(rows, num_logits);
  return std::span<const NextToken>(s.next).first(num_logits);
}

}  // namespace zerofleet
