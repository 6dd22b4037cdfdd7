#include "kernels/norm/rmsnorm.h"
#include "model/layers/norm.h"

namespace zerofleet {
namespace {

class RmsNorm final : public Norm {
 public:
  explicit RmsNorm(const NormSpec& spec) : spec_(spec) {}

  // 4·M
  Kept make_kept(const ModelContext& model, std::int64_t rows) const override {
    return {Values<float>(model.ctx, rows), {}};
  }
  void bind(ParamPointers params) override { weight_ = params[spec_.weight]; }

  void forward(const ModelContext& model, const Residual& residual, const Matrix& y, Kept& kept) const override {
    RmsNormForward args;
    args.x = residual.x;
    args.delta = residual.delta;
    args.sum = residual.sum;
    args.weight = weight_;
    args.weight_offset = model.config.norm_offset;
    args.eps = model.config.norm_eps;
    args.y = y;
    args.rstd = kept.rstd.first(y.rows);
    rmsnorm(model.ctx, args);
  }

  // Makes 4·D of work where the weight is trained.
  void backward(const ModelContext& model, const Backward& pass, const Kept& kept, Work& work,
                GradSink& sink) const override {
    RmsNormBackward args;
    args.dy = pass.dy;
    args.x = pass.x;
    args.weight = weight_;
    args.weight_offset = model.config.norm_offset;
    args.rstd = kept.rstd.first(pass.x.rows);
    args.residual = pass.residual;
    args.dx = pass.dx;
    if (model.trains(spec_.weight)) args.dweight = values_for(model, work.dweight, pass.x.cols);
    rmsnorm_backward(model.ctx, args);
    model.emit(spec_.weight, args.dweight, sink);
  }

 private:
  NormSpec spec_;
  const void* weight_ = nullptr;
};

}  // namespace

std::unique_ptr<Norm> make_rms_norm(const NormSpec& spec) { return std::make_unique<RmsNorm>(spec); }

}  // namespace zerofleet
