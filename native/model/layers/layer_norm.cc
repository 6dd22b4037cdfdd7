#include "kernels/norm/layernorm.h"
#include "model/layers/norm.h"

namespace zerofleet {
namespace {

class LayerNorm final : public Norm {
 public:
  explicit LayerNorm(const NormSpec& spec) : spec_(spec) {}

  // 8·M
  Kept make_kept(const ModelContext& model, std::int64_t rows) const override {
    return {Values<float>(model.ctx, rows), Values<float>(model.ctx, rows)};
  }
  void bind(ParamPointers params) override {
    weight_ = params[spec_.weight];
    bias_ = params[spec_.bias.value()];
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
    args.mean = kept.mean.first(y.rows);
    args.rstd = kept.rstd.first(y.rows);
    layernorm(model.ctx, args);
  }

  // Makes 8·D of work where the weight or the bias is trained.
  void backward(const ModelContext& model, const Backward& pass, const Kept& kept, Work& work,
                GradSink& sink) const override {
    LayerNormBackward args;
    args.dy = pass.dy;
    args.x = pass.x;
    args.weight = weight_;
    args.mean = kept.mean.first(pass.x.rows);
    args.rstd = kept.rstd.first(pass.x.rows);
    args.residual = pass.residual;
    args.dx = pass.dx;
    if (model.trains(spec_.weight) || model.trains(spec_.bias.value())) {
      args.dweight = values_for(model, work.dweight, pass.x.cols);
      args.dbias = values_for(model, work.dbias, pass.x.cols);
    }
    layernorm_backward(model.ctx, args);
    model.emit(spec_.bias.value(), args.dbias, sink);
    model.emit(spec_.weight, args.dweight, sink);
  }

 private:
  NormSpec spec_;
  const void* weight_ = nullptr;
  const void* bias_ = nullptr;
};

}  // namespace

std::unique_ptr<Norm> make_layer_norm(const NormSpec& spec) { return std::make_unique<LayerNorm>(spec); }

}  // namespace zerofleet
