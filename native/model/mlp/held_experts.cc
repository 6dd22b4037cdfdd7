#include "model/mlp/held_experts.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "kernels/elementwise/glu.h"
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

HeldExperts::Expert::Expert(const ModelContext& model, const DenseSpec& spec)
    : inner(model, spec.inner, model.config.hidden_size, Linear::RowCount::kVaries),
      outer(model, spec.outer, model.config.intermediate_size, Linear::RowCount::kVaries) {}

HeldExperts::HeldExperts(const ModelContext& model, std::span<const DenseSpec> specs) {
  for (const DenseSpec& spec : specs) experts_.emplace_back(model, spec);
}

HeldExperts::LowRows HeldExperts::low_rows() const {
  const Expert& expert = experts_.front();
  return {expert.inner.adapter().low_size(), expert.outer.adapter().low_size(), {}, {}};
}

void HeldExperts::LowRows::resize(const ModelContext& model, std::int64_t rows) {
  if (inner_size > 0) grown(model.ctx, inner, model.dtype, rows, inner_size);
  if (outer_size > 0) grown(model.ctx, outer, model.dtype, rows, outer_size);
}

HeldExperts::Kept::Kept(const ModelContext& model, std::int64_t rows, const HeldExperts& experts)
    : low(experts.low_rows()) {
  resize(model, rows);
}

void HeldExperts::Kept::resize(const ModelContext& model, std::int64_t rows) {
  const ModelConfig& c = model.config;
  grown(model.ctx, gathered, model.dtype, rows, c.hidden_size);
  grown(model.ctx, inner, model.dtype, rows, 2 * c.intermediate_size);
  grown(model.ctx, act, model.dtype, rows, c.intermediate_size);
  low.resize(model, rows);
}

// R · (row(D) + row(2·I) + row(I)) for the most rows so far, with adapters R · row(low_size()) of each Linear
std::size_t HeldExperts::Kept::num_bytes() const { return bytes_of(gathered, inner, act, low); }

HeldExperts::Work::Work(const ModelContext& model, std::int64_t rows, const HeldExperts& experts)
    : dlow(experts.low_rows()),
      inner(model, experts.experts_.front().inner, 1),
      outer(model, experts.experts_.front().outer, 1) {
  resize(model, rows);
}

void HeldExperts::Work::resize(const ModelContext& model, std::int64_t rows) {
  grown(model.ctx, dinner, model.dtype, rows, 2 * model.config.intermediate_size);
  grown(model.ctx, dact, model.dtype, rows, model.config.intermediate_size);
  dlow.resize(model, rows);
}

// R · (row(2·I) + row(I)), with adapters R · row(low_size()) of each Linear, and the gradients of one expert, whose
// operands have room for the most rows of an expert so far.
std::size_t HeldExperts::Work::num_bytes() const { return bytes_of(dinner, dact, dlow, inner, outer); }

void HeldExperts::request_forward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests) {
  for (Expert& expert : experts_) {
    expert.inner.request_forward(model, params, requests);
    expert.outer.request_forward(model, params, requests);
  }
}

void HeldExperts::request_backward(const ModelContext& model, ParamPointers params,
                                   std::vector<PackRequest>& requests) {
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

void HeldExperts::forward_of(const ModelContext& model, const ExpertRows& rows, LinearOf linear, const Matrix& x,
                             const Matrix& y, const Tensor& low) const {
  on_all(model, rows, [&](const Expert& expert, const Part& part, std::vector<GemmProblem>& problems) {
    const Matrix mine = rows_of(x, part.rows);
    const std::size_t first = problems.size();
    (expert.*linear).add_forward(model, mine, rows_of(y, part.rows), problems, part.row_range);
    const LinearAdapter& adapter = (expert.*linear).adapter();
    if (!adapter.is_on(model)) return;
    const Matrix rows_of_low = rows_of(low.view(), part.rows);
    adapter.magnitudes().keep_products(rows_of_low, std::span(problems).subspan(first));
    adapter.add_low(mine, rows_of_low, problems, part.row_range);
  });
  if (!model.adapters_on) return;
  on_all(model, rows, [&](const Expert& expert, const Part& part, std::vector<GemmProblem>& problems) {
    (expert.*linear)
        .adapter()
        .add_outputs(rows_of(low.view(), part.rows), rows_of(y, part.rows), problems, part.row_range);
  });
  for (std::size_t e = 0; e < experts_.size(); ++e) {
    const Part part(rows, e);
    if (!part.rows.empty())
      (experts_[e].*linear)
          .adapter()
          .finish(model, rows_of(low.view(), part.rows), rows_of(y, part.rows), part.row_range);
  }
}

void HeldExperts::low_gradient_of(const ModelContext& model, const ExpertRows& rows, LinearOf linear, const Matrix& dy,
                                  const Tensor& dlow) const {
  on_all(model, rows, [&](const Expert& expert, const Part& part, std::vector<GemmProblem>& problems) {
    const LinearAdapter& adapter = (expert.*linear).adapter();
    const Matrix drows = rows_of(dlow.view(), part.rows);
    const Matrix dproducts = adapter.magnitudes().scale_gradient(model, rows_of(dy, part.rows), drows, part.row_range);
    adapter.add_low_gradient(dproducts, drows, problems, part.row_range);
  });
}

void HeldExperts::input_gradient_of(const ModelContext& model, const ExpertRows& rows, LinearOf linear,
                                    const Matrix& dy, const Matrix& dx, const Tensor& dlow) const {
  on_all(model, rows, [&](const Expert& expert, const Part& part, std::vector<GemmProblem>& problems) {
    const AdapterMagnitudes& magnitudes = (expert.*linear).adapter().magnitudes();
    const Matrix mine = magnitudes.product_gradient(rows_of(dy, part.rows), rows_of(dlow.view(), part.rows));
    (expert.*linear).add_input_gradient(model, mine, rows_of(dx, part.rows), problems, part.row_range);
  });
  for (std::size_t number = 0; number < (experts_.front().*linear).adapter().num_parts(); ++number) {
    on_all(model, rows, [&](const Expert& expert, const Part& part, std::vector<GemmProblem>& problems) {
      (expert.*linear)
          .adapter()
          .add_input_gradient(number, rows_of(dlow.view(), part.rows), rows_of(dx, part.rows), problems,
                              part.row_range);
    });
  }
}

void HeldExperts::forward(const ModelContext& model, const ExpertRows& rows, const Kept& kept,
                          const Matrix& out) const {
  if (rows.count == 0) return;
  forward_of(model, rows, &Expert::inner, kept.gathered.view(), kept.inner.view(), kept.low.inner);
  glu(model.ctx, GluKind::kSilu, kept.inner.first_rows(rows.count), kept.act.first_rows(rows.count));
  forward_of(model, rows, &Expert::outer, kept.act.view(), out, kept.low.outer);
}

// The gradients of rows come last, because they take the place of those that the parameters' gradients are made of.
void HeldExperts::backward(const ModelContext& model, const ExpertRows& rows, const Kept& kept, const Matrix& drows,
                           Work& work, GradSink& sink) const {
  if (rows.count > 0) {
    low_gradient_of(model, rows, &Expert::outer, drows, work.dlow.outer);
    input_gradient_of(model, rows, &Expert::outer, drows, work.dact.view(), work.dlow.outer);
    glu_backward(model.ctx, GluKind::kSilu, kept.inner.first_rows(rows.count), work.dact.first_rows(rows.count),
                 work.dinner.first_rows(rows.count));
    low_gradient_of(model, rows, &Expert::inner, work.dinner.view(), work.dlow.inner);
  }
  for (std::size_t e = experts_.size(); e-- > 0;) {
    weight_gradients(model, experts_[e], Part(rows, e), kept, drows, work, sink);
  }
  if (rows.count == 0) return;
  input_gradient_of(model, rows, &Expert::inner, work.dinner.view(), drows, work.dlow.inner);
}

// An expert that no token chose has a gradient of zeros; where only the device knows, they are sums over nothing.
void HeldExperts::weight_gradients(const ModelContext& model, const Expert& expert, const Part& part, const Kept& kept,
                                   const Matrix& drows, Work& work, GradSink& sink) const {
  const auto mine = [&](const Tensor& tensor) { return rows_of(tensor.view(), part.rows); };
  Held held(sink);
  if (!part.rows.empty()) {
    const LinearAdapter::Backward outer{mine(kept.act), mine(kept.low.outer), rows_of(drows, part.rows),
                                        mine(work.dlow.outer)};
    const LinearAdapter::Backward inner{mine(kept.gathered), mine(kept.low.inner), mine(work.dinner),
                                        mine(work.dlow.inner)};
    expert.outer.weight_gradients(model, outer, work.outer, held, part.row_range);
    expert.inner.weight_gradients(model, inner, work.inner, held, part.row_range);
  } else {
    expert.outer.no_gradient(model, work.outer, held);
    expert.inner.no_gradient(model, work.inner, held);
  }
  held.release();
}

}  // namespace zerofleet
