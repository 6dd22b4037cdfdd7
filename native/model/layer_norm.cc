#include "kernels/layernorm.h"

#include "model/norm.h"

namespace zerofleet {
namespace {

class LayerNorm final : public Norm {
 public:
  explicit LayerNorm(const NormPlace& place) : place_(place) {}

  // 8·M
  Kept make_kept(std::int64_t rows) const override {
    const auto count = static_cast<std::size_t>(rows);
    return {std::vector<float>(count), std::vector<float>(count)};
  }
  // 8·D
  Work make_work(const ModelContext& model) const override {
    const auto count = static_cast<std::size_t>(model.config.hidden_size);
    return {std::vector<float>(count), std::vector<float>(count)};
  }
  void bind(ParamPointers params) override {
    weight_ = params[place_.weight];
    bias_ = params[place_.bias.value()];
  }

  void forward(const ModelContext& model, const Residual& residual, const Matrix& y, Kept& kept) const override {
    LayerNormForward args;
    args.x = residual.x;
    args.delta = residual.delta;
    args.sum = residual.sum;
    args.weight = weight_;
    args.bias = bias_;
    args.eps = model.config.norm_eps;
    args.y = y;
    args.mean = std::span(kept.mean).first(static_cast<std::size_t>(y.rows));
    args.rstd = std::span(kept.rstd).first(static_cast<std::size_t>(y.rows));
    layernorm(model.ctx, args);
  }

  void backward(const ModelContext& model, const Backward& pass, const Kept& kept, Work& work,
                const EmitGrad& emit) const override {
    LayerNormBackward args;
    args.dy = pass.dy;
    args.x = pass.x;
    args.weight = weight_;
    args.mean = kept.mean;
    args.rstd = kept.rstd;
    args.residual = pass.residual;
    args.dx = pass.dx;
    args.dweight = work.dweight;
    args.dbias = work.dbias;
    layernorm_backward(model.ctx, args);
    emit(place_.bias.value(), work.dbias);
    emit(place_.weight, work.dweight);
  }

 private:
  NormPlace place_;
  const void* weight_ = nullptr;
  const void* bias_ = nullptr;
};

}  // namespace

std::unique_ptr<Norm> make_layer_norm(const NormPlace& place) { return std::make_unique<LayerNorm>(place); }

}  // namespace zerofleet
