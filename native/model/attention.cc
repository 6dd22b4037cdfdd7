#include "model/attention.h"

#include "kernels/rope.h"

namespace zerofleet {
namespace {

AttentionShape attention_shape(const ModelConfig& config, const PassShape& pass) {
  return {pass.batch, pass.length, config.num_attention_heads, config.num_key_value_heads, config.head_dim};
}

/// Rotates the query and key heads of qkv (M, QKV).
void rotate(const ModelContext& model, const PassShape& pass, const Matrix& qkv, bool inverse) {
  const ModelConfig& c = model.config;
  rope(model.ctx, {qkv.columns(0, c.query_size() + c.key_value_size()), model.rotations,
                   c.num_attention_heads + c.num_key_value_heads, pass.length, inverse});
}

}  // namespace

AttentionBlock::AttentionBlock(const ModelContext& model, const LayerPlace& place)
    : qkv_(model, place.qkv, model.config.hidden_size), output_(model, place.output, model.config.query_size()) {}

AttentionBlock::Kept::Kept(const ModelContext& model, const PassShape& shape)
    : qkv(model.tensor(shape.rows(), model.config.qkv_size())),
      attended(model.tensor(shape.rows(), model.config.query_size())),
      lse(static_cast<std::size_t>(shape.rows() * model.config.num_attention_heads)) {}

// M · (row(QKV) + row(Q)) + 4·M·H
std::size_t AttentionBlock::Kept::num_bytes() const { return bytes_of(qkv, attended) + bytes_of(lse); }

AttentionBlock::Work::Work(const ModelContext& model, const PassShape& shape, const AttentionBlock& block)
    : dqkv(model.tensor(shape.rows(), model.config.qkv_size())),
      dattended(model.tensor(shape.rows(), model.config.query_size())),
      qkv(model, block.qkv_, shape.rows()),
      output(model, block.output_, shape.rows()) {}

// M · (row(QKV) + row(Q)) and the gradients of two Linears
std::size_t AttentionBlock::Work::num_bytes() const { return bytes_of(dqkv, dattended, qkv, output); }

void AttentionBlock::request_forward(const ModelContext& model, ParamPointers params,
                                     std::vector<PackRequest>& requests) {
  qkv_.request_forward(model, params, requests);
  output_.request_forward(model, params, requests);
}

void AttentionBlock::request_backward(const ModelContext& model, ParamPointers params,
                                      std::vector<PackRequest>& requests) {
  qkv_.request_backward(model, params, requests);
  output_.request_backward(model, params, requests);
}

void AttentionBlock::forward(const ModelContext& model, const PassShape& pass, const Matrix& x, const Matrix& y,
                             Kept& kept) const {
  const std::int64_t rows = pass.rows();
  const Matrix qkv = kept.qkv.first_rows(rows), attended = kept.attended.first_rows(rows);
  qkv_.forward(model, x, qkv);
  rotate(model, pass, qkv, false);
  const auto lse = std::span(kept.lse).first(static_cast<std::size_t>(rows * model.config.num_attention_heads));
  attention(model.ctx, *model.scratch, {attention_shape(model.config, pass), qkv, attended, lse});
  output_.forward(model, attended, y);
}

void AttentionBlock::backward(const ModelContext& model, const PassShape& pass, const Backward& args, const Kept& kept,
                              Work& work, const EmitGrad& emit) const {
  const Matrix dattended = work.dattended.view(), dqkv = work.dqkv.view();
  output_.backward(model, kept.attended.view(), args.dy, dattended, work.output, emit);
  attention_backward(model.ctx, *model.scratch,
                     {attention_shape(model.config, pass), kept.qkv.view(), kept.attended.view(), kept.lse, dattended,
                      dqkv});
  rotate(model, pass, dqkv, true);
  qkv_.backward(model, args.x, dqkv, args.dx, work.qkv, emit);
}

}  // namespace zerofleet
