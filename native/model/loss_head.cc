#include "model/loss_head.h"

#include <algorithm>
#include <chrono>

#include "kernels/cross_entropy.h"
#include "kernels/gemm.h"

namespace zerofleet {
namespace {

constexpr std::int64_t kChunkUnit = 64;

std::int64_t chunk_rows_for(std::int64_t vocab_size, std::int64_t max_rows, std::int64_t max_logits_bytes) {
  const std::int64_t fitting = max_logits_bytes / (vocab_size * 4) / kChunkUnit * kChunkUnit;
  return std::min(max_rows, std::max(kChunkUnit, fitting));
}

/// The gradient of the logits in the memory of the logits, row on row.
Matrix gradient_over(const Matrix& logits, DType dtype) {
  const auto per_float = static_cast<std::int64_t>(sizeof(float) / size_of(dtype));
  return {logits.data, dtype, logits.rows, logits.cols, logits.stride * per_float};
}

Matrix rows_of(const Matrix& matrix, std::int64_t begin, std::int64_t count) {
  return {matrix.at(begin, 0), matrix.dtype, count, matrix.cols, matrix.stride};
}

}  // namespace

LossHead::LossHead(const ModelContext& model, std::int64_t max_rows, std::int64_t max_logits_bytes)
    : chunk_rows_(chunk_rows_for(model.config.vocab_size, max_rows, max_logits_bytes)),
      forward_(model.ctx, model.dtype, model.config.hidden_size, model.config.vocab_size),
      logits_(model.ctx, DType::kF32, chunk_rows_, model.config.vocab_size),
      losses_(static_cast<std::size_t>(chunk_rows_)) {}

void LossHead::pack_forward(const ModelContext& model, const void* weight) {
  const ModelConfig& c = model.config;
  const PackRequest request[] = {
      {{weight, model.dtype, c.vocab_size, c.hidden_size, c.hidden_size}, SourceRows::kAlongN, &forward_}};
  pack(model.ctx, request);
}

void LossHead::pack_backward(const ModelContext& model, const void* weight) {
  const ModelConfig& c = model.config;
  if (backward_.k() == 0) backward_ = PackedMatrix(model.ctx, model.dtype, c.vocab_size, c.hidden_size);
  const PackRequest request[] = {
      {{weight, model.dtype, c.vocab_size, c.hidden_size, c.hidden_size}, SourceRows::kAlongK, &backward_}};
  pack(model.ctx, request);
}

LeafResult LossHead::run(const ModelContext& model, const Matrix& normed, std::span<const std::int32_t> targets,
                         const Gradients* gradients) {
  LeafResult result;
  backward_seconds_ = 0;
  for (std::int64_t first = 0; first < normed.rows; first += chunk_rows_) {
    const std::int64_t rows = std::min(chunk_rows_, normed.rows - first);
    const Matrix chunk = rows_of(normed, first, rows), logits = logits_.first_rows(rows);
    const GemmProblem product[] = {{chunk, &forward_, logits}};
    gemm(model.ctx, *model.scratch, product);
    const Matrix dlogits = gradients == nullptr ? Matrix{} : gradient_over(logits, model.dtype);
    const auto chunk_targets = targets.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(rows));
    const auto losses = std::span(losses_).first(static_cast<std::size_t>(rows));
    cross_entropy(model.ctx,
                  {logits, chunk_targets, losses, dlogits, gradients == nullptr ? 0.0F : gradients->grad_scale});
    for (std::size_t row = 0; row < losses.size(); ++row) {
      if (chunk_targets[row] < 0) continue;
      result.loss_sum += static_cast<double>(losses[row]);
      ++result.num_targets;
    }
    if (gradients == nullptr) continue;
    const auto start = std::chrono::steady_clock::now();
    chunk_backward(model, chunk, dlogits, *gradients, first);
    backward_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return result;
}

void LossHead::chunk_backward(const ModelContext& model, const Matrix& normed, const Matrix& dlogits,
                              const Gradients& gradients, std::int64_t first_row) {
  PackedMatrix& packed = normed.rows == chunk_rows_ ? packed_full_ : packed_rest_;
  if (packed.k() != normed.rows) packed = PackedMatrix(model.ctx, model.dtype, normed.rows, normed.cols);
  const PackRequest request[] = {{normed, SourceRows::kAlongK, &packed}};
  pack(model.ctx, request);
  const GemmProblem products[] = {{dlogits, &backward_, rows_of(gradients.normed, first_row, normed.rows)},
                                  {dlogits, &packed, gradients.weight, true, first_row > 0}};
  gemm(model.ctx, *model.scratch, products);
}

// With R = chunk_rows_ (see chunk_rows_for) and M rows in all; packed() and row() as in block.h, V vocab_size:
//   R · (V·4, plus 64 where V·4 is a multiple of 2048) + 4·R, and from the first backward on
//   packed(R, D) where M ≥ R, plus packed(M mod R, D) where that is not 0.
// The packed weight is packed(D, V), and from the first backward on packed(V, D) too.
std::size_t LossHead::activation_bytes() const {
  return logits_.num_bytes() + losses_.size() * sizeof(float) + packed_full_.num_bytes() + packed_rest_.num_bytes();
}

void LossHead::logits(const ModelContext& model, const Matrix& row, std::span<float> logits) {
  const GemmProblem product[] = {
      {row, &forward_, {logits.data(), DType::kF32, 1, model.config.vocab_size, model.config.vocab_size}}};
  gemm(model.ctx, *model.scratch, product);
}

}  // namespace zerofleet
