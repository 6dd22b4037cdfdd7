#include "model/layers/token_embedding.h"

#include "kernels/embedding/embedding.h"

namespace zerofleet {
namespace {

double embedding_scale_of(const ModelContext& model) {
  const double scale = model.config.embedding_scale;
  if (!model.config.rounds_embedding_scale || model.dtype == DType::kF32) return scale;
  const auto value = static_cast<float>(scale);
  return static_cast<double>(model.dtype == DType::kBF16 ? to_float(to_bf16(value)) : to_float(to_f16(value)));
}

}  // namespace

TokenEmbedding::TokenEmbedding(const ModelContext& model, const ParamTable& table)
    : tokens_(table.embed),
      positions_(table.positions),
      scale_(embedding_scale_of(model)),
      dropout_(model.config.embedding_dropout, 0) {}

// 4·V·D, and with learned positions 4·max_position_embeddings·D, where they are trained
TokenEmbedding::Work::Work(const ModelContext& model, const ParamTable& table, std::int64_t rows)
    : same_tokens(model.ctx, rows), same_positions(model.ctx, table.positions ? rows : 0) {
  const auto gradients = [&](std::int64_t count) {
    return Tensor(model.ctx, DType::kF32, count, model.config.hidden_size, Tensor::Rows::kContiguous);
  };
  if (model.trains(table.embed) || model.trains(table.head)) dtokens = gradients(model.config.vocab_size);
  if (table.positions && model.trains(*table.positions)) dpositions = gradients(model.config.max_position_embeddings);
}

ConstMatrix TokenEmbedding::matrix(const ModelContext& model, std::size_t param, std::int64_t rows) const {
  return {params_[param], model.dtype, rows, model.config.hidden_size, model.config.hidden_size};
}

// Dropout of the sum is dropout of both parts with one mask.
Residual TokenEmbedding::forward(const ModelContext& model, const Pass& pass, const Indices& tokens,
                                 const Matrix& input, const Matrix& tokens_part, const Matrix& added) const {
  const Matrix rows = positions_ ? tokens_part : input;
  if (packed_ != nullptr) {
    packed_embedding(model.ctx, *packed_, tokens, rows);
  } else {
    embedding(model.ctx, matrix(model, tokens_, model.config.vocab_size), tokens, rows);
  }
  if (scale_ != 1) scale(model.ctx, scale_, rows, rows);
  dropout_.forward(model, pass, rows);
  if (!positions_) return {input, {}, {}};
  embedding(model.ctx, matrix(model, *positions_, model.config.max_position_embeddings), pass.positions, added);
  dropout_.forward(model, pass, added);
  return {tokens_part, added, input};
}

void TokenEmbedding::backward(const ModelContext& model, const Pass& pass, const Indices& tokens, const Matrix& dstream,
                              Work& work, GradSink& sink) const {
  const bool trains_positions = positions_ && model.trains(*positions_);
  if (!trains_positions && !model.trains(tokens_)) return;
  dropout_.forward(model, pass, dstream);
  if (trains_positions) {
    const PositionGroups groups = work.same_positions.upload(model.ctx, pass.positions);
    embedding_backward(model.ctx, pass.positions, groups, dstream, work.dpositions.view(), false);
    sink.take(*positions_, work.dpositions.floats());
  }
  if (!model.trains(tokens_)) return;
  if (scale_ != 1) scale(model.ctx, scale_, dstream, dstream);
  const PositionGroups groups = work.same_tokens.upload(model.ctx, tokens);
  embedding_backward(model.ctx, tokens, groups, dstream, work.dtokens.view(), model.config.tie_word_embeddings);
  sink.take(tokens_, work.dtokens.floats());
}

}  // namespace zerofleet
