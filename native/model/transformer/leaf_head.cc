#include "model/transformer/leaf_head.h"

#include <iterator>

#include "core/error.h"
#include "kernels/common/backend.h"
#include "kernels/embedding/embedding.h"

namespace zerofleet {

LeafHead::LeafHead(const ModelContext& model, std::int64_t max_rows)
    : head_(model, max_rows),
      targets_upload_(model.ctx, max_rows),
      rows_upload_(model.ctx, max_rows),
      indices_upload_(model.ctx, max_rows) {}

Matrix LeafHead::pick(const ModelContext& model, const Input& input) {
  const PassShape& shape = input.leaf.shape();
  rows_.emplace(input.leaf.input().targets, shape, backend_of(model.ctx).row_unit);
  batch_ = shape.batch;
  if (rows_->are_all()) return input.normed;
  const Matrix picked = input.room.first_rows(std::ssize(rows_->rows()));
  embedding(model.ctx, input.normed, rows_upload_.upload(model.ctx, rows_->rows()), picked);
  return picked;
}

void LeafHead::forward(const ModelContext& model, const Input& input) {
  const Matrix normed = pick(model, input);  // makes rows_
  head_.run(model, normed, targets_upload_.upload(model.ctx, rows_->targets()), nullptr);
}

// An objective needs the scores of all sequences before the first gradient. Once picked, the rows of input.normed make
// room for the gradients of the picked ones.
void LeafHead::forward_backward(const ModelContext& model, const Input& input, const LossHead::Gradients& to,
                                const SequenceObjective& objective) {
  const Matrix normed = pick(model, input);
  const Indices targets = targets_upload_.upload(model.ctx, rows_->targets());
  LossHead::Gradients of_rows = to;
  if (!rows_->are_all()) of_rows.normed = input.normed.first_rows(normed.rows);
  std::vector<float> factors;
  if (objective) {
    head_.run(model, normed, targets, of_rows, [&]() -> std::span<const float> {
      factors = factors_of(objective, to.grad_scale);
      return factors;
    });
  } else {
    head_.run(model, normed, targets, &of_rows);
  }
  if (!rows_->are_all())
    embedding(model.ctx, of_rows.normed, indices_upload_.upload(model.ctx, rows_->indices()), to.normed);
}

// A loss is -log p, so that its factor is that of log p with the other sign.
std::vector<float> LeafHead::factors_of(const SequenceObjective& objective, float scale) const {
  const std::vector<double> derivatives = objective(scores());
  require(std::ssize(derivatives) == batch_, "invalid_argument", "an objective returns one derivative per sequence");
  std::vector<float> factors;
  for (const std::int32_t sequence : rows_->sequences()) {
    const double factor = derivatives[static_cast<std::size_t>(sequence)];
    factors.push_back(static_cast<float>(-factor * static_cast<double>(scale)));
  }
  return factors;
}

}  // namespace zerofleet
