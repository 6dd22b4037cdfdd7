#include "model/layers/attention.h"

#include "kernels/attention/head_order.h"
#include "kernels/attention/paged_attention.h"
#include "kernels/attention/rope.h"
#include "model/layers/kv_cache.h"

namespace zerofleet {
namespace {

/// From the order of the matrix's rows to that of attention, or back.
void order_heads_of(const ModelContext& model, const Matrix& qkv, bool by_head) {
  if (model.config.qkv_by_head) order_heads(model.ctx, {qkv, model.config.num_attention_heads, by_head});
}

/// Rotates the query and key heads of qkv (M, QKV), in layers with rotary positions.
void rotate(const ModelContext& model, const Pass& pass, std::size_t layer, const Matrix& qkv, bool inverse) {
  const ModelConfig& c = model.config;
  const std::int64_t rope_kind = c.rope_of(layer);
  if (model.rotations == nullptr || rope_kind == 0) return;
  const RopeTable* table = rope_kind == 2 ? model.local_rotations : model.rotations;
  rope(model.ctx,
       {qkv.columns(0, c.query_size() + c.key_value_size()), table, c.num_attention_heads + c.num_key_value_heads,
        pass.shape.length, inverse, pass.positions, c.rope_interleaved});
}

}  // namespace

AttentionShape attention_shape(const ModelConfig& config, const PassShape& shape) {
  return {shape.batch,     shape.length,           config.num_attention_heads, config.num_key_value_heads,
          config.head_dim, config.attention_scale, config.attention_soft_cap};
}

AttentionBlock::AttentionBlock(const ModelContext& model, const LayerSpec& spec, std::size_t number)
    : number_(number),
      window_(model.config.window(number)),
      dropout_site_(dropout_site(number, DropoutSite::kProbabilities)),
      qkv_(model, spec.qkv, model.config.hidden_size),
      output_(model, spec.output, model.config.query_size()) {
  if (spec.qk_norm) qk_norm_.emplace(*spec.qk_norm);
}

AttentionBlock::Kept::Kept(const ModelContext& model, const PassShape& shape, const AttentionBlock& block)
    : qkv(model.tensor(shape.rows(), model.config.qkv_size())),
      attended(model.tensor(shape.rows(), model.config.query_size())),
      lse(model.ctx, shape.rows() * model.config.num_attention_heads),
      qkv_low(block.qkv_.adapter().make_low(model, shape.rows())),
      output_low(block.output_.adapter().make_low(model, shape.rows())) {
  if (model.config.qk_norm) qk_norm.emplace(model, shape.rows());
}

// M · (row(QKV) + row(Q)) + 4·M·H, with adapters M · row(low_size()) of each Linear, plus the bytes of QK-norm
std::size_t AttentionBlock::Kept::num_bytes() const {
  return bytes_of(qkv, attended, lse, qkv_low, output_low) + (qk_norm ? qk_norm->num_bytes() : 0);
}

AttentionBlock::Work::Work(const ModelContext& model, const PassShape& shape, const AttentionBlock& block)
    : dqkv(model.tensor(shape.rows(), model.config.qkv_size())),
      dattended(model.tensor(shape.rows(), model.config.query_size())),
      qkv(model, block.qkv_, shape.rows()),
      output(model, block.output_, shape.rows()) {}

// M · (row(QKV) + row(Q)), the gradients of two Linears, plus the bytes of QK-norm
std::size_t AttentionBlock::Work::num_bytes() const { return bytes_of(dqkv, dattended, qkv, output, qk_norm); }

void AttentionBlock::request_forward(const ModelContext& model, ParamPointers params,
                                     std::vector<PackRequest>& requests) {
  qkv_.request_forward(model, params, requests);
  output_.request_forward(model, params, requests);
  if (qk_norm_) qk_norm_->bind(params);
}

void AttentionBlock::request_backward(const ModelContext& model, ParamPointers params,
                                      std::vector<PackRequest>& requests) {
  qkv_.request_backward(model, params, requests);
  output_.request_backward(model, params, requests);
}

/// Queries, keys and values, normed but not rotated.
void AttentionBlock::project(const ModelContext& model, const Pass& pass, const Matrix& x, const Matrix& qkv,
                             Kept& kept) const {
  if (!qk_norm_) return qkv_.forward(model, pass, x, qkv, kept.qkv_low);
  const std::int64_t query = model.config.query_size(), key_value = model.config.key_value_size();
  const Matrix raw = kept.qk_norm->raw.first_rows(x.rows);
  const Matrix parts[] = {raw.columns(0, query), raw.columns(query, key_value),
                          qkv.columns(query + key_value, key_value)};
  qkv_.forward(model, pass, x, parts, kept.qkv_low);
  qk_norm_->forward(model, *kept.qk_norm, qkv);
}

// Sequences of their own lengths have a call each: a sequence's bits then depend neither on the others nor on where its
// rows begin.
std::vector<AttentionBlock::Call> AttentionBlock::calls(const ModelContext& model, const Pass& pass) const {
  const PassShape& shape = pass.shape;
  std::vector<Call> calls;
  const auto add = [&](std::int64_t first, const PassShape& part, std::uint32_t sequence) {
    const std::int64_t count = part.rows();
    if (count == 0) return;
    AttentionOptions options{window_};
    if (!pass.document_starts.empty()) {
      options.document_starts =
          pass.document_starts.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    }
    if (pass.dropout != nullptr) {
      options.dropout_key = pass.dropout_key(dropout_site_);
      options.dropout_key.sequence = sequence;
      options.dropout = model.config.attention_dropout;
    }
    calls.push_back({first, count, attention_shape(model.config, part), options});
  };
  if (shape.ends.empty()) {
    add(0, shape, 0);
  } else {
    for (std::int64_t sequence = 0; sequence < shape.batch; ++sequence) {
      const std::int64_t begin = shape.begin(sequence);
      add(begin, {1, shape.end(sequence) - begin}, static_cast<std::uint32_t>(sequence));
    }
  }
  return calls;
}

void AttentionBlock::attend(const ModelContext& model, const Pass& pass, const Matrix& qkv, const Matrix& out,
                            Kept& kept) const {
  if (pass.kv_cache != nullptr) {
    const AttentionShape shape = attention_shape(model.config, pass.shape);
    KvCache& cache = *pass.kv_cache;
    return paged_attention(model.ctx, *model.scratch,
                           {shape, qkv, cache.keys[number_].data(), cache.values[number_].data(), cache.num_pages,
                            cache.rows, window_, out});
  }
  for (const Call& call : calls(model, pass)) {
    attention(model.ctx, *model.scratch,
              {call.shape, call.of(qkv), call.of(out), call.of(kept.lse.span()), call.options});
  }
}

void AttentionBlock::forward(const ModelContext& model, const Pass& pass, const Matrix& x, const Matrix& y,
                             Kept& kept) const {
  const std::int64_t rows = pass.rows();
  const Matrix qkv = kept.qkv.first_rows(rows), attended = kept.attended.first_rows(rows);
  project(model, pass, x, qkv, kept);
  order_heads_of(model, qkv, false);
  rotate(model, pass, number_, qkv, false);
  attend(model, pass, qkv, attended, kept);
  output_.forward(model, pass, attended, y, kept.output_low);
}

void AttentionBlock::backward(const ModelContext& model, const Pass& pass, const Backward& args, const Kept& kept,
                              Work& work, GradSink& sink) const {
  const std::int64_t rows = pass.rows();
  const Matrix qkv = kept.qkv.first_rows(rows), attended = kept.attended.first_rows(rows);
  const Matrix dqkv = work.dqkv.first_rows(rows), dattended = work.dattended.first_rows(rows);
  output_.backward(model, pass, {attended, args.dy, dattended}, kept.output_low, work.output, sink);
  for (const Call& call : calls(model, pass)) {
    attention_backward(model.ctx, *model.scratch,
                       {call.shape, call.of(qkv), call.of(attended), call.of(kept.lse.span()), call.of(dattended),
                        call.of(dqkv), call.options});
  }
  rotate(model, pass, number_, dqkv, true);
  order_heads_of(model, dqkv, true);
  if (qk_norm_) qk_norm_->backward(model, *kept.qk_norm, dqkv, work.qk_norm, sink);
  qkv_.backward(model, pass, {args.x, dqkv, args.dx}, kept.qkv_low, work.qkv, sink);
}

}  // namespace zerofleet
