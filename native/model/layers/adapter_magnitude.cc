#include "model/layers/adapter_magnitude.h"

#include <algorithm>

#include "core/device/transfer.h"
#include "core/error.h"

namespace zerofleet {

AdapterMagnitudes::AdapterMagnitudes(const ModelContext& model, const LinearSpecs& matrices) {
  std::int64_t begin = 0;
  for (std::size_t index = 0; index < matrices.size(); ++index) {
    const LinearSpec& matrix = matrices[index];
    if (matrix.adapter && matrix.adapter->magnitude)
      parts_.push_back({index, begin, matrix.out, *matrix.adapter->magnitude, matrix.bias});
    begin += matrix.out;
  }
  if (parts_.empty()) return;
  width_ = begin;
  norms_ = Values<float>(model.ctx, width_);
  factors_ = Values<float>(model.ctx, width_);
  inverses_ = Values<float>(model.ctx, width_);
  const std::vector<float> ones(static_cast<std::size_t>(width_), 1.0F);
  copy_bytes(model.ctx, factors_.bytes(), model.ctx.device, std::as_bytes(std::span(ones)), Device{});
}

std::span<float> AdapterMagnitudes::of_part(Values<float>& values, const Part& part) {
  return values.span().subspan(static_cast<std::size_t>(part.begin), static_cast<std::size_t>(part.out));
}

std::span<const float> AdapterMagnitudes::of_part(const Values<float>& values, const Part& part) {
  return values.span().subspan(static_cast<std::size_t>(part.begin), static_cast<std::size_t>(part.out));
}

const AdapterMagnitudes::Part& AdapterMagnitudes::part_of(std::size_t index) const {
  const auto part = std::ranges::find(parts_, index, &Part::index);
  require(part != parts_.end(), "internal", "a matrix without a magnitude");
  return *part;
}

std::optional<std::size_t> AdapterMagnitudes::param(std::size_t index) const {
  return empty() ? std::nullopt : std::optional(part_of(index).param);
}

void AdapterMagnitudes::bind(const ModelContext& model, ParamPointers params, std::size_t index,
                             const AdaptedMatrix& matrix) {
  const auto part = std::ranges::find(parts_, index, &Part::index);
  if (part == parts_.end()) return;
  part->bias = part->bias_param ? params[*part->bias_param] : nullptr;
  direction_norms(model.ctx, {matrix, of_part(norms_, *part), params[part->param], of_part(factors_, *part),
                              of_part(inverses_, *part)});
}

Matrix AdapterMagnitudes::products_of(const Matrix& rows, std::size_t index) const {
  const Part& part = part_of(index);
  return rows.columns(part.begin, part.out);
}

void AdapterMagnitudes::keep_products(const Matrix& rows, std::span<GemmProblem> products) const {
  for (const Part& part : parts_) {
    products[part.index].c = rows.columns(part.begin, part.out);
    products[part.index].bias = nullptr;
  }
}

void AdapterMagnitudes::output(const ModelContext& model, std::size_t index, const Matrix& rows, const Matrix& y,
                               const std::int32_t* row_range) const {
  const Part& part = part_of(index);
  scale_columns(model.ctx, {rows.columns(part.begin, part.out), of_part(factors_, part), part.bias, y, row_range});
}

Matrix AdapterMagnitudes::scale_gradient(const ModelContext& model, const Matrix& dy, const Matrix& drows,
                                         const std::int32_t* row_range) const {
  const Matrix dz = product_gradient(dy, drows);
  if (!empty()) scale_columns(model.ctx, {dy, factors_.span(), nullptr, dz, row_range});
  return dz;
}

void AdapterMagnitudes::gradient(const ModelContext& model, std::size_t index, const Matrix& dy, const Matrix& rows,
                                 std::span<float> gradient, const RowPart& rows_here,
                                 const std::int32_t* row_range) const {
  const Part& part = part_of(index);
  magnitude_gradient(model.ctx, {dy.columns(part.begin, part.out), rows.columns(part.begin, part.out),
                                 of_part(inverses_, part), gradient, row_range, rows_here.begins, rows_here.ends});
}

}  // namespace zerofleet
