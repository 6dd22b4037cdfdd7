#include "model/transformer/leaf_head.h"

#include <iterator>

#include "core/error.h"
#include "kernels/common/backend.h"
#include "kernels/embedding/embedding.h"

namespace zerofleet {

LeafHead::LeafHead(const ModelContext& model, const PassShape& shape)
    : head_(model, shape.rows()),
      shape_(shape),
      targets_upload_(model.ctx, shape.rows()),
      rows_upload_(model.ctx, shape.rows()),
      indices_upload_(model.ctx, shape.rows()) {}

Matrix LeafHead::pick(const ModelContext& model, const Input& input) {
  const PassShape& shape = input.leaf.shape();
  rows_.emplace(input.leaf.input().targets, shape, backend_of(model.ctx).row_unit);
  positions_.clear();
  for (std::size_t index = 0; index < rows_->targets().size(); ++index) {
    const std::int64_t row = rows_->rows()[index], sequence = rows_->sequences()[index];
    positions_.push_back(static_cast<std::size_t>(sequence * shape_.length + row - shape.begin(sequence)));
  }
  if (rows_->are_all()) return input.normed;
  const Matrix picked = input.room.first_rows(std::ssize(rows_->rows()));
  embedding(model.ctx, input.normed, rows_upload_.upload(model.ctx, rows_->rows()), picked);
  return picked;
}

void LeafHead::forward(const ModelContext& model, const Input& input) {
  const Matrix normed = pick(model, input);  // makes rows_
  head_.run(model, normed, targets_upload_.upload(model.ctx, rows_->targets()), nullptr);
}

// Derivatives need the losses of all rows before the first gradient. Once picked, the rows of input.normed make room
// for the gradients of the picked ones. A loss is -log p, so that its factor is that of log p with the other sign.
void LeafHead::forward_backward(const ModelContext& model, const Input& input, const LossHead::Gradients& to,
                                const RowDerivatives& derivatives) {
  const Matrix normed = pick(model, input);
  const Indices targets = targets_upload_.upload(model.ctx, rows_->targets());
  LossHead::Gradients of_rows = to;
  if (!rows_->are_all()) of_rows.normed = input.normed.first_rows(normed.rows);
  std::vector<float> factors;
  if (derivatives) {
    head_.run(model, normed, targets, of_rows, [&]() -> std::span<const float> {
      const auto scale = static_cast<double>(to.grad_scale);
      for (const double derivative : derivatives(*this)) factors.push_back(static_cast<float>(-derivative * scale));
      return factors;
    });
  } else {
    head_.run(model, normed, targets, &of_rows);
  }
  if (!rows_->are_all())
    embedding(model.ctx, of_rows.normed, indices_upload_.upload(model.ctx, rows_->indices()), to.normed);
}

std::vector<double> LeafHead::derivatives_of(const SequenceObjective& objective) const {
  const std::vector<double> of_sequences = objective(scores());
  require(std::ssize(of_sequences) == shape_.batch, "invalid_argument",
          "an objective returns one derivative per sequence");
  std::vector<double> of_rows;
  for (const std::int32_t sequence : rows_->sequences()) {
    of_rows.push_back(of_sequences[static_cast<std::size_t>(sequence)]);
  }
  return of_rows;
}

std::vector<double> LeafHead::derivatives_of(const TargetObjective& objective) const {
  const std::vector<double> of_leaf = objective(log_probs());
  require(std::ssize(of_leaf) == shape_.rows(), "invalid_argument", "an objective returns one derivative per token");
  std::vector<double> of_rows;
  for (const std::size_t position : positions_) of_rows.push_back(of_leaf[position]);
  return of_rows;
}

std::vector<float> LeafHead::log_probs() const {
  const std::span<const float> losses = head_.losses();
  std::vector<float> log_probs(static_cast<std::size_t>(shape_.rows()), 0.0F);
  for (std::size_t row = 0; row < positions_.size(); ++row) {
    if (rows_->targets()[row] >= 0) log_probs[positions_[row]] = -losses[row];
  }
  return log_probs;
}

}  // namespace zerofleet
