#include <optional>

#include "core/error.h"
#include "kernels/elementwise/glu.h"
#include "model/mlp/mlp.h"

// With activation checkpointing a long pass goes through the MLP in parts of R rows, in the forward and again in the
// backward. Its wide activations then exist for R rows only. A row's results do not depend on other rows. Gradients of
// parameters add up the parts in the order of the rows, which is the order of one product. Otherwise R is M.
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
  DenseKept(const ModelContext& model, std::int64_t rows, const Linear& to_inner, const Linear& to_hidden)
      : inner(model.tensor(rows, to_inner.out())),
        act(model.tensor(rows, to_hidden.in())),
        inner_low(to_inner.adapter().make_low(model, rows)),
        outer_low(to_hidden.adapter().make_low(model, rows)) {}
  // R · (row(width·I) + row(I)), with adapters R · row(low_size()) of each Linear
  std::size_t num_bytes() const override { return bytes_of(inner, act, inner_low, outer_low); }
  std::int64_t rows() const { return inner.view().rows; }

  Tensor inner;                 // (R, width·I)
  Tensor act;                   // (R, I)
  Tensor inner_low, outer_low;  // (R, low_size()) of adapters, or empty
};

struct DenseWork final : Mlp::Work {
  DenseWork(const ModelContext& model, std::int64_t rows, const Linear& to_inner, const Linear& to_hidden,
            const std::shared_ptr<PackedMatrix>& spare)
      : dinner(model.tensor(rows_at_once(model, rows), to_inner.out())),
        inner(model, to_inner, rows, spare),
        outer(model, to_hidden, rows) {
    if (model.config.gated_mlp()) dact = model.tensor(dinner.view().rows, to_hidden.in());
  }
  // R · (row(width·I) and for a gate row(I)) and the gradients of two Linears
  std::size_t num_bytes() const override { return bytes_of(dinner, dact, inner, outer); }

  Tensor dinner;  // (R, width·I)
  Tensor dact;    // (R, I), of a gate alone: GELU's gradient overwrites its input
  LinearGradients inner, outer;
};

class DenseMlp final : public Mlp {
 public:
  DenseMlp(const ModelContext& model, const DenseSpec& spec, std::int64_t inner)
      : gelu_(gelu_of(model.config.mlp)),
        glu_(model.config.mlp == MlpType::kGegluTanh ? GluKind::kGeluTanh : GluKind::kSilu),
        inner_(model, spec.inner, model.config.hidden_size),
        outer_(model, spec.outer, inner) {}

  std::unique_ptr<Kept> make_kept(const ModelContext& model, const PassShape& shape) const override {
    return std::make_unique<DenseKept>(model, rows_at_once(model, shape.rows()), inner_, outer_);
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
    if (x.rows <= mine.rows()) activate_rows(model, pass, x, mine);
  }

  void project(const ModelContext& model, const Pass& pass, const Matrix& x, Kept& kept,
               const Matrix& y) const override {
    DenseKept& mine = static_cast<DenseKept&>(kept);
    for_row_parts(pass, x.rows, mine.rows(), [&](const Pass& part, const auto& rows_of) {
      if (!part.part.is_whole()) activate_rows(model, part, rows_of(x), mine);
      const Matrix to = rows_of(y);
      outer_.forward_from_low(model, part, mine.act.first_rows(to.rows), to, mine.outer_low);
    });
  }

  void backward(const ModelContext& model, const Pass& pass, const Backward& args, Kept& kept, Work& work,
                GradSink& sink) const override {
    DenseKept& mine = static_cast<DenseKept&>(kept);
    for_row_parts(pass, args.x.rows, mine.rows(), [&](const Pass& part, const auto& rows_of) {
      const Backward rows{rows_of(args.x), rows_of(args.dy), rows_of(args.dx)};
      if (!part.part.is_whole()) activate_rows(model, part, rows.x, mine);
      backward_rows(model, part, rows, mine, static_cast<DenseWork&>(work), sink);
    });
  }

 private:
  void activate_rows(const ModelContext& model, const Pass& pass, const Matrix& x, DenseKept& kept) const {
    const Matrix inner = kept.inner.first_rows(x.rows), act = kept.act.first_rows(x.rows);
    if (gelu_) {
      inner_.forward(model, pass, x, act, kept.inner_low, {GemmEpilogue::Kind::kGelu, *gelu_, inner});
    } else {
      inner_.forward(model, pass, x, inner, kept.inner_low);
      glu(model.ctx, glu_, inner, act);
    }
    outer_.forward_low(model, pass, act, kept.outer_low);
  }

  void backward_rows(const ModelContext& model, const Pass& pass, const Backward& args, const DenseKept& kept,
                     DenseWork& to, GradSink& sink) const {
    const std::int64_t rows = args.x.rows;
    const Matrix inner = kept.inner.first_rows(rows), act = kept.act.first_rows(rows);
    const Matrix dinner = to.dinner.first_rows(rows), dact = to.dact.first_rows(rows);
    if (gelu_) {
      const GemmEpilogue gelu{GemmEpilogue::Kind::kGeluBackward, *gelu_, inner};
      outer_.backward(model, pass, {act, args.dy, dinner, gelu}, kept.outer_low, to.outer, sink);
    } else {
      outer_.backward(model, pass, {act, args.dy, dact}, kept.outer_low, to.outer, sink);
      glu_backward(model.ctx, glu_, inner, dact, dinner);
    }
    inner_.backward(model, pass, {args.x, dinner, args.dx}, kept.inner_low, to.inner, sink);
  }

  std::optional<GeluKind> gelu_;
  GluKind glu_;  // without gelu_
  Linear inner_, outer_;
};

}  // namespace

std::unique_ptr<Mlp> make_dense_mlp(const ModelContext& model, const DenseSpec& spec, std::int64_t inner) {
  return std::make_unique<DenseMlp>(model, spec, inner);
}

}  // namespace zerofleet
