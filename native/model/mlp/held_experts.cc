#include "model/mlp/held_experts.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "kernels/elementwise/swiglu.h"
#include "model/mlp/row_exchange.h"

namespace zerofleet {
namespace {

Matrix rows_of(const Matrix& matrix, const Range& rows) {
  return {matrix.at(rows.begin, 0), matrix.dtype, rows.size(), matrix.cols, matrix.stride};
}

/// Holds gradients until all of an expert's are there; then they go on, the last parameter's first.
class Held final : public GradSink {
 public:
  explicit Held(GradSink& sink) : sink_(sink) {}

  void take(std::size_t param, const GradView& grad) override { grads_.emplace_back(param, grad); }
  std::byte* room_for(std::size_t param, DType dtype) override { return sink_.room_for(param, dtype); }

  void release() {
    std::ranges::sort(grads_, std::ranges::greater{}, &std::pair<std::size_t, GradView>::first);
    for (const auto& [param, grad] : grads_) sink_.take(param, grad);
  }

 private:
  GradSink& sink_;
  std::vector<std::pair<std::size_t, GradView>> grads_;
};

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

HeldExperts::Part::Part(const ExpertRows& all, std::size_t expert)
    : rows(all.device_first != nullptr ? Range{0, all.count} : Range{all.first[expert], all.first[expert + 1]}),
      row_range(all.device_first == nullptr ? nullptr : all.device_first + expert) {}

// All experts' products are one call: those of few rows share the device or the threads.
void HeldExperts::on_all(const ModelContext& model, const ExpertRows& rows, const AddProducts& add) const {
  std::vector<GemmProblem> problems;
  for (std::size_t e = 0; e < experts_.size(); ++e) {
    const Part part(rows, e);
    if (!part.rows.empty()) add(experts_[e], part, problems);
  }
  gemm(model.ctx, *model.scratch, problems);
}

void HeldExperts::forward(const ModelContext& model, const ExpertRows& rows, const Kept& kept, const Matrix& out) const {
  if (rows.count == 0) return;
  on_all(model, rows, [&](const Expert& expert, const Part& part, std::vector<GemmProblem>& problems) {
    expert.inner.add_forward(rows_of(kept.gathered.view(), part.rows), rows_of(kept.inner.view(), part.rows), problems,
                             part.row_range);
  });
  swiglu(model.ctx, kept.inner.first_rows(rows.count), kept.act.first_rows(rows.count));
  on_all(model, rows, [&](const Expert& expert, const Part& part, std::vector<GemmProblem>& problems) {
    expert.outer.add_forward(rows_of(kept.act.view(), part.rows), rows_of(out, part.rows), problems, part.row_range);
  });
}

// The gradients of rows come last, because they take the place of those that the parameters' gradients are made of.
void HeldExperts::backward(const ModelContext& model, const ExpertRows& rows, const Kept& kept, const Matrix& drows,
                           Work& work, GradSink& sink) const {
  if (rows.count > 0) {
    on_all(model, rows, [&](const Expert& expert, const Part& part, std::vector<GemmProblem>& problems) {
      expert.outer.add_input_gradient(rows_of(drows, part.rows), rows_of(work.dact.view(), part.rows), problems,
                                      part.row_range);
    });
    swiglu_backward(model.ctx, kept.inner.first_rows(rows.count), work.dact.first_rows(rows.count),
                    work.dinner.first_rows(rows.count));
  }
  for (std::size_t e = experts_.size(); e-- > 0;) {
    weight_gradients(model, experts_[e], Part(rows, e), kept, drows, work, sink);
  }
  if (rows.count == 0) return;
  on_all(model, rows, [&](const Expert& expert, const Part& part, std::vector<GemmProblem>& problems) {
    expert.inner.add_input_gradient(rows_of(work.dinner.view(), part.rows), rows_of(drows, part.rows), problems,
                                    part.row_range);
  });
}

// An expert that no token chose has a gradient of zeros; where only the device knows, they are sums over nothing.
void HeldExperts::weight_gradients(const ModelContext& model, const Expert& expert, const Part& part, const Kept& kept,
                                   const Matrix& drows, Work& work, GradSink& sink) const {
  const auto mine = [&](const Tensor& tensor) { return rows_of(tensor.view(), part.rows); };
  Held held(sink);
  if (!part.rows.empty()) {
    work.outer.resize(model, part.rows.size());
    work.inner.resize(model, part.rows.size());
    expert.outer.weight_gradients(model, mine(kept.act), rows_of(drows, part.rows), work.outer, held, part.row_range);
    expert.inner.weight_gradients(model, mine(kept.gathered), mine(work.dinner), work.inner, held, part.row_range);
  } else {
    expert.outer.no_gradient(model, work.outer, held);
    expert.inner.no_gradient(model, work.inner, held);
  }
  held.release();
}

}  // namespace zerofleet
