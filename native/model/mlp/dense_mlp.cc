#include <optional>

#include "core/error.h"
#include "kernels/elementwise/glu.h"
#include "model/mlp/mlp.h"

namespace zerofleet {
namespace {

/// GELU between the two products of an MLP; none: a gate, f(x₁) · x₂.
std::optional<GeluKind> gelu_of(MlpType type) {
  switch (type) {
    case MlpType::kSwiglu:
    case MlpType::kGegluTanh:
      return std::nullopt;
    case MlpType::kGelu:
      return GeluKind::kExact;
    case MlpType::kGeluTanh:
      return GeluKind::kTanh;
  }
  throw Error("internal", "no such MLP");
}

struct DenseKept final : Mlp::Kept {
  DenseKept(const ModelContext& model, std::int64_t rows, std::int64_t width, const Linear& to_inner,
            const Linear& to_hidden)
      : inner(model.tensor(rows, width * model.config.intermediate_size)),
        act(model.tensor(rows, model.config.intermediate_size)),
        inner_low(to_inner.adapter().make_low(model, rows)),
        outer_low(to_hidden.adapter().make_low(model, rows)) {}
  // M · (row(width·I) + row(I)), with adapters M · row(low_size()) of each Linear
  std::size_t num_bytes() const override { return bytes_of(inner, act, inner_low, outer_low); }

  Tensor inner;                 // (M, width·I)
  Tensor act;                   // (M, I)
  Tensor inner_low, outer_low;  // (M, low_size()) of adapters, or empty
};

struct DenseWork final : Mlp::Work {
  DenseWork(const ModelContext& model, std::int64_t rows, const Linear& to_inner, const Linear& to_hidden,
            const std::shared_ptr<PackedMatrix>& spare)
      : dinner(model.tensor(rows, to_inner.out())), inner(model, to_inner, rows, spare), outer(model, to_hidden, rows) {
    if (model.config.gated_mlp()) dact = model.tensor(rows, to_hidden.in());
  }
  // M · (row(width·I) and for a gate row(I)) and the gradients of two Linears
  std::size_t num_bytes() const override { return bytes_of(dinner, dact, inner, outer); }

  Tensor dinner;  // (M, width·I)
  Tensor dact;    // (M, I), of a gate alone: GELU's gradient overwrites its input
  LinearGradients inner, outer;
};

class DenseMlp final : public Mlp {
 public:
  DenseMlp(const ModelContext& model, const DenseSpec& spec)
      : gelu_(gelu_of(model.config.mlp)),
        glu_(model.config.mlp == MlpType::kGegluTanh ? GluKind::kGeluTanh : GluKind::kSilu),
        inner_(model, spec.inner, model.config.hidden_size, model.weights),
        outer_(model, spec.outer, model.config.intermediate_size, model.weights) {}

  std::unique_ptr<Kept> make_kept(const ModelContext& model, const PassShape& shape) const override {
    return std::make_unique<DenseKept>(model, shape.rows(), gelu_ ? 1 : 2, inner_, outer_);
  }
  std::unique_ptr<Work> make_work(const ModelContext& model, const PassShape& shape,
                                  const std::shared_ptr<PackedMatrix>& spare) const override {
    return std::make_unique<DenseWork>(model, shape.rows(), inner_, outer_, spare);
  }

  void request_forward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests) override {
    inner_.request_forward(model, params, requests);
    outer_.request_forward(model, params, requests);
  }
  void request_backward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests) override {
    inner_.request_backward(model, params, requests);
    outer_.request_backward(model, params, requests);
  }
  std::size_t packed_bytes() const override { return inner_.packed_bytes() + outer_.packed_bytes(); }

  void activate(const ModelContext& model, const Pass& pass, const Matrix& x, Kept& kept) const override {
    DenseKept& mine = static_cast<DenseKept&>(kept);
    const Matrix inner = mine.inner.first_rows(x.rows), act = mine.act.first_rows(x.rows);
    if (gelu_) {
      inner_.forward(model, pass, x, act, mine.inner_low, {GemmEpilogue::Kind::kGelu, *gelu_, inner});
    } else {
      inner_.forward(model, pass, x, inner, mine.inner_low);
      glu(model.ctx, glu_, inner, act);
    }
    outer_.forward_low(model, pass, act, mine.outer_low);
  }

  void project(const ModelContext& model, const Pass& pass, const Kept& kept, const Matrix& y) const override {
    const DenseKept& mine = static_cast<const DenseKept&>(kept);
    outer_.forward_from_low(model, pass, mine.act.first_rows(y.rows), y, mine.outer_low);
  }

  void backward(const ModelContext& model, const Pass& pass, const Backward& args, const Kept& kept, Work& work,
                GradSink& sink) const override {
    const DenseKept& mine = static_cast<const DenseKept&>(kept);
    DenseWork& to = static_cast<DenseWork&>(work);
    const std::int64_t rows = pass.rows();
    const Matrix inner = mine.inner.first_rows(rows), act = mine.act.first_rows(rows);
    const Matrix dinner = to.dinner.first_rows(rows), dact = to.dact.first_rows(rows);
    if (gelu_) {
      const GemmEpilogue gelu{GemmEpilogue::Kind::kGeluBackward, *gelu_, inner};
      outer_.backward(model, pass, {act, args.dy, dinner, gelu}, mine.outer_low, to.outer, sink);
    } else {
      outer_.backward(model, pass, {act, args.dy, dact}, mine.outer_low, to.outer, sink);
      glu_backward(model.ctx, glu_, inner, dact, dinner);
    }
    inner_.backward(model, pass, {args.x, dinner, args.dx}, mine.inner_low, to.inner, sink);
  }

 private:
  std::optional<GeluKind> gelu_;
  GluKind glu_;  // without gelu_
  Linear inner_, outer_;
};

}  // namespace

std::unique_ptr<Mlp> make_dense_mlp(const ModelContext& model, const DenseSpec& spec) {
  return std::make_unique<DenseMlp>(model, spec);
}

}  // namespace zerofleet
