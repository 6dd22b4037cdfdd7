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
    : inner(model, place.inner, model.config.hidden_size, WeightUse::kPackedCopies, Linear::RowCount::kVaries),
      outer(model, place.outer, model.config.intermediate_size, WeightUse::kPackedCopies, Linear::RowCount::kVaries) {}

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

// All experts' products are one call: those of few rows share the device or the threads.
void HeldExperts::on_all(const ModelContext& model, std::span<const std::int64_t> first, const AddProducts& add) const {
  std::vector<GemmProblem> problems;
  for (std::size_t e = 0; e < experts_.size(); ++e) {
    const Range rows{first[e], first[e + 1]};
    if (!rows.empty()) add(experts_[e], rows, problems);
  }
  gemm(model.ctx, *model.scratch, problems);
}

void HeldExperts::forward(const ModelContext& model, std::span<const std::int64_t> first, const Kept& kept,
                          const Matrix& out) const {
  const std::int64_t num_rows = first.back();
  if (num_rows == 0) return;
  on_all(model, first, [&](const Expert& expert, const Range& rows, std::vector<GemmProblem>& problems) {
    expert.inner.add_forward(rows_of(kept.gathered.view(), rows), rows_of(kept.inner.view(), rows), problems);
  });
  swiglu(model.ctx, kept.inner.first_rows(num_rows), kept.act.first_rows(num_rows));
  on_all(model, first, [&](const Expert& expert, const Range& rows, std::vector<GemmProblem>& problems) {
    expert.outer.add_forward(rows_of(kept.act.view(), rows), rows_of(out, rows), problems);
  });
}

// The gradients of rows come last, because they take the place of those that the parameters' gradients are made of.
void HeldExperts::backward(const ModelContext& model, std::span<const std::int64_t> first, const Kept& kept,
                           const Matrix& drows, Work& work, const EmitGrad& emit) const {
  const std::int64_t num_rows = first.back();
  if (num_rows > 0) {
    on_all(model, first, [&](const Expert& expert, const Range& rows, std::vector<GemmProblem>& problems) {
      expert.outer.add_input_gradient(rows_of(drows, rows), rows_of(work.dact.view(), rows), problems);
    });
    swiglu_backward(model.ctx, kept.inner.first_rows(num_rows), work.dact.first_rows(num_rows),
                    work.dinner.first_rows(num_rows));
  }
  for (std::size_t e = experts_.size(); e-- > 0;) {
    weight_gradients(model, experts_[e], {first[e], first[e + 1]}, kept, drows, work, emit);
  }
  if (num_rows == 0) return;
  on_all(model, first, [&](const Expert& expert, const Range& rows, std::vector<GemmProblem>& problems) {
    expert.inner.add_input_gradient(rows_of(work.dinner.view(), rows), rows_of(drows, rows), problems);
  });
}

// An expert that no token chose has a gradient of zeros.
void HeldExperts::weight_gradients(const ModelContext& model, const Expert& expert, const Range& rows, const Kept& kept,
                                   const Matrix& drows, Work& work, const EmitGrad& emit) const {
  const auto mine = [&](const Tensor& tensor) { return rows_of(tensor.view(), rows); };
  Held held;
  const EmitGrad hold = [&](std::size_t param, std::span<const float> grad) { held.emplace_back(param, grad); };
  if (!rows.empty()) {
    work.outer.resize(model, rows.size());
    work.inner.resize(model, rows.size());
    expert.outer.weight_gradients(model, mine(kept.act), rows_of(drows, rows), work.outer, hold);
    expert.inner.weight_gradients(model, mine(kept.gathered), mine(work.dinner), work.inner, hold);
  } else {
    expert.outer.no_gradient(model, work.outer, hold);
    expert.inner.no_gradient(model, work.inner, hold);
  }
  std::ranges::sort(held, std::ranges::greater{}, &Held::value_type::first);
  for (const auto& [param, grad] : held) emit(param, grad);
}

}  // namespace zerofleet
