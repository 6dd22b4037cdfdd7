#include "core/error.h"
#include "kernels/gelu.h"
#include "kernels/swiglu.h"
#include "model/mlp.h"

namespace zerofleet {
namespace {

/// The elementwise function between the two products of an MLP.
struct Activation {
  std::int64_t width;  // columns that go in, in multiples of I: 2 for a gate and what it gates
  void (*forward)(const Context& ctx, const ConstMatrix& inner, const Matrix& act);
  void (*backward)(const Context& ctx, const ConstMatrix& inner, const ConstMatrix& dact, const Matrix& dinner);
};

template <GeluKind kKind>
constexpr Activation kGeluOf{
    1,
    [](const Context& ctx, const ConstMatrix& inner, const Matrix& act) { gelu(ctx, kKind, inner, act); },
    [](const Context& ctx, const ConstMatrix& inner, const ConstMatrix& dact, const Matrix& dinner) {
      gelu_backward(ctx, kKind, inner, dact, dinner);
    }};

const Activation& activation_of(MlpType type) {
  static constexpr Activation kSwiglu{2, swiglu, swiglu_backward};
  switch (type) {
    case MlpType::kSwiglu: return kSwiglu;
    case MlpType::kGelu: return kGeluOf<GeluKind::kExact>;
    case MlpType::kGeluTanh: return kGeluOf<GeluKind::kTanh>;
  }
  throw Error("internal", "no such MLP");
}

struct DenseKept final : Mlp::Kept {
  DenseKept(const ModelContext& model, std::int64_t rows, std::int64_t width)
      : inner(model.tensor(rows, width * model.config.intermediate_size)),
        act(model.tensor(rows, model.config.intermediate_size)) {}
  // M · (row(width·I) + row(I))
  std::size_t num_bytes() const override { return bytes_of(inner, act); }

  Tensor inner;  // (M, width·I)
  Tensor act;    // (M, I)
};

struct DenseWork final : Mlp::Work {
  DenseWork(const ModelContext& model, std::int64_t rows, const Linear& to_inner, const Linear& to_hidden,
            const std::shared_ptr<PackedMatrix>& spare)
      : dinner(model.tensor(rows, to_inner.out())),
        dact(model.tensor(rows, to_hidden.in())),
        inner(model, to_inner, rows, spare),
        outer(model, to_hidden, rows) {}
  // M · (row(width·I) + row(I)) and the gradients of two Linears
  std::size_t num_bytes() const override { return bytes_of(dinner, dact, inner, outer); }

  Tensor dinner;  // (M, width·I)
  Tensor dact;    // (M, I)
  LinearGradients inner, outer;
};

class DenseMlp final : public Mlp {
 public:
  DenseMlp(const ModelContext& model, const DensePlace& place, const Activation& activation)
      : activation_(activation),
        inner_(model, place.inner, model.config.hidden_size, model.weights),
        outer_(model, place.outer, model.config.intermediate_size, model.weights) {}

  std::unique_ptr<Kept> make_kept(const ModelContext& model, const PassShape& shape) const override {
    return std::make_unique<DenseKept>(model, shape.rows(), activation_.width);
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

  void activate(const ModelContext& model, const Pass&, const Matrix& x, Kept& kept) const override {
    DenseKept& mine = static_cast<DenseKept&>(kept);
    const Matrix inner = mine.inner.first_rows(x.rows);
    inner_.forward(model, x, inner);
    activation_.forward(model.ctx, inner, mine.act.first_rows(x.rows));
  }

  void project(const ModelContext& model, const Kept& kept, const Matrix& y) const override {
    outer_.forward(model, static_cast<const DenseKept&>(kept).act.first_rows(y.rows), y);
  }

  void backward(const ModelContext& model, const Pass&, const Backward& args, const Kept& kept, Work& work,
                const EmitGrad& emit) const override {
    const DenseKept& mine = static_cast<const DenseKept&>(kept);
    DenseWork& to = static_cast<DenseWork&>(work);
    const Matrix dinner = to.dinner.view(), dact = to.dact.view();
    outer_.backward(model, mine.act.view(), args.dy, dact, to.outer, emit);
    activation_.backward(model.ctx, mine.inner.view(), dact, dinner);
    inner_.backward(model, args.x, dinner, args.dx, to.inner, emit);
  }

 private:
  Activation activation_;
  Linear inner_, outer_;
};

}  // namespace

std::unique_ptr<Mlp> make_dense_mlp(const ModelContext& model, const DensePlace& place) {
  return std::make_unique<DenseMlp>(model, place, activation_of(model.config.mlp));
}

}  // namespace zerofleet
