#include "model/held_experts.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "kernels/swiglu.h"
#include "model/row_exchange.h"

namespace zerofleet {
namespace {

Matrix rows_of(const Matrix& matrix, const Range& rows) {
  return {matrix.at(rows.begin, 0), matrix.dtype, rows.size(), matrix.cols, matrix.stride};
}

/// Gradients that wait until all of an expert's are there.
using Held = std::vector<std::pair<std::size_t, std::span<const float>>>;

}  // namespace

HeldExperts::Expert::Expert(const ModelContext& model, const DensePlace& place)
    : inner(model, place.inner, model.config.hidden_size, WeightUse::kPackedCopies),
      outer(model, place.outer, model.config.intermediate_size, WeightUse::kPackedCopies) {}

HeldExperts::HeldExperts(const ModelContext& model, std::span<const DensePlace> places) {
  for (const DensePlace& place : places) experts_.emplace_back(model, place);
}

HeldExperts::Kept::Kept(const ModelContext& model, std::int64_t rows) { resize(model, rows); }

void HeldExperts::Kept::resize(const ModelContext& model, std::int64_t rows) {
  const ModelConfig& c = model.config;
  grown(model.ctx, gathered, model.dtype, rows, c.hidden_size);
  grown(model.ctx, inner, model.dtype, rows, 2 * c.intermediate_size);
  grown(model.ctx, act, model.dtype, rows, c.intermediate_size);
}

// R · (row(D) + row(2·I) + row(I)) for the most rows so far
std::size_t HeldExperts::Kept::num_bytes() const { return bytes_of(gathered, inner, act); }

HeldExperts::Work::Work(const ModelContext& model, std::int64_t rows, const HeldExperts& experts)
    : inner(model, experts.experts_.front().inner, 1), outer(model, experts.experts_.front().outer, 1) {
  resize(model, rows);
}

void HeldExperts::Work::resize(const ModelContext& model, std::int64_t rows) {
  grown(model.ctx, dinner, model.dtype, rows, 2 * model.config.intermediate_size);
  grown(model.ctx, dact, model.dtype, rows, model.config.intermediate_size);
}

// R · (row(2·I) + row(I)), and the gradients of one expert, whose operands have as many rows as the expert that was last
// computed.
std::size_t HeldExperts::Work::num_bytes() const { return bytes_of(dinner, dact, inner, outer); }

void HeldExperts::request_forward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests) {
  for (Expert& expert : experts_) {
    expert.inner.request_forward(model, params, requests);
    expert.outer.request_forward(model, params, requests);
  }
}

void HeldExperts::request_backward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests) {
  for (Expert& expert : experts_) {
    expert.inner.request_backward(model, params, requests);
    expert.outer.request_backward(model, params, requests);
  }
}

std::size_t HeldExperts::packed_bytes() const {
  std::size_t num_bytes = 0;
  for (const Expert& expert : experts_) num_bytes += expert.inner.packed_bytes() + expert.outer.packed_bytes();
  return num_bytes;
}

void HeldExperts::forward(const ModelContext& model, std::span<const std::int64_t> first, const Kept& kept,
                          const Matrix& out) const {
  const std::int64_t num_rows = first.back();
  if (num_rows == 0) return;
  const auto on_rows = [&](const Linear& linear, std::size_t expert, const Matrix& from, const Matrix& to) {
    const Range rows{first[expert], first[expert + 1]};
    if (!rows.empty()) linear.forward(model, rows_of(from, rows), rows_of(to, rows));
  };
  for (std::size_t e = 0; e < experts_.size(); ++e) on_rows(experts_[e].inner, e, kept.gathered.view(), kept.inner.view());
  swiglu(model.ctx, kept.inner.first_rows(num_rows), kept.act.first_rows(num_rows));
  for (std::size_t e = 0; e < experts_.size(); ++e) on_rows(experts_[e].outer, e, kept.act.view(), out);
}

void HeldExperts::backward(const ModelContext& model, std::span<const std::int64_t> first, const Kept& kept,
                           const Matrix& drows, Work& work, const EmitGrad& emit) const {
  for (std::size_t e = experts_.size(); e-- > 0;) {
    expert_backward(model, experts_[e], {first[e], first[e + 1]}, kept, drows, work, emit);
  }
}

// An expert that no token chose has a gradient of zeros.
void HeldExperts::expert_backward(const ModelContext& model, const Expert& expert, const Range& rows, const Kept& kept,
                                  const Matrix& drows, Work& work, const EmitGrad& emit) const {
  const auto mine = [&](const Tensor& tensor) { return rows_of(tensor.view(), rows); };
  Held held;
  const EmitGrad hold = [&](std::size_t param, std::span<const float> grad) { held.emplace_back(param, grad); };
  if (!rows.empty()) {
    work.outer.resize(model, rows.size());
    work.inner.resize(model, rows.size());
    const Matrix gradients = rows_of(drows, rows);
    expert.outer.backward(model, mine(kept.act), gradients, mine(work.dact), work.outer, hold);
    swiglu_backward(model.ctx, mine(kept.inner), mine(work.dact), mine(work.dinner));
    expert.inner.backward(model, mine(kept.gathered), mine(work.dinner), gradients, work.inner, hold);
  } else {
    expert.outer.no_gradient(model, work.outer, hold);
    expert.inner.no_gradient(model, work.inner, hold);
  }
  std::ranges::sort(held, std::ranges::greater{}, &Held::value_type::first);
  for (const auto& [param, grad] : held) emit(param, grad);
}

}  // namespace zerofleet
