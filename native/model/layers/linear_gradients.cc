#include <utility>

#include "model/layers/linear.h"

namespace zerofleet {

LinearGradients::LinearGradients(const ModelContext& model, const Linear& linear, std::int64_t rows_of_pass,
                                 std::shared_ptr<PackedMatrix> spare)
    : rows(linear.rows_ == Linear::RowCount::kVaries ? rows_of_pass : rows_at_once(model, rows_of_pass)),
      dtype(rows < rows_of_pass ? DType::kF32 : model.weight_gradients),
      adapter(model, linear.adapter(), rows, dtype),
      dlow(linear.adapter().make_low(model, rows)) {
  const bool in_first = linear.layout_ == WeightLayout::kInOut;
  for (const LinearSpec& spec : linear.specs_) {
    const std::int64_t height = in_first ? linear.in() : spec.out, width = in_first ? spec.out : linear.in();
    const bool has_weight = !model.frozen.has_all_like(spec.weight);
    const bool has_bias = spec.bias && !model.frozen.has_all_like(*spec.bias);
    weights.push_back(has_weight ? Tensor(model.ctx, dtype, height, width, Tensor::Rows::kContiguous) : Tensor());
    biases.emplace_back(model.ctx, has_bias ? spec.out : 0);
    any_weight = any_weight || has_weight;
  }
  targets.resize(weights.size());
  operand = std::make_shared<PackedMatrix>();
  if (!any_weight) return;
  const std::int64_t columns = in_first ? linear.out() : linear.in();
  is_spare = spare && spare->k() == rows && spare->n() == columns;
  if (is_spare) {
    operand = std::move(spare);
  } else {
    *operand = PackedMatrix(model.ctx, model.dtype, rows, columns);
  }
}

// g · in · out for gradients of g bytes, and 4 · out where there is a bias, each unless it is frozen in all layers.
// Unless all weights are frozen or a spare operand serves, also packed(R, in), or packed(R, out) for weights that are
// stored as (in, out). With an adapter also R · row(low_size()) and its gradients. R is M where the number of rows
// varies.
std::size_t LinearGradients::num_bytes() const {
  std::size_t num_bytes = (is_spare ? 0 : operand->num_bytes()) + bytes_of(adapter, dlow);
  for (const Tensor& weight : weights) num_bytes += weight.num_bytes();
  for (const Values<float>& bias : biases) num_bytes += bias.num_bytes();
  return num_bytes;
}

}  // namespace zerofleet
