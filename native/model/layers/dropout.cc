#include "model/layers/dropout.h"

namespace zerofleet {

void Dropout::forward(const ModelContext& model, const Pass& pass, const Matrix& x) const {
  if (drops(pass)) dropout(model.ctx, pass.dropout_key(site_), probability_, x, x);
  if (scale_ != 1) scale(model.ctx, scale_, x, x);
}

Matrix Dropout::backward(const ModelContext& model, const Pass& pass, const Matrix& dy, const Matrix& room) const {
  if (scale_ != 1) scale(model.ctx, scale_, dy, room);
  if (drops(pass)) dropout(model.ctx, pass.dropout_key(site_), probability_, scale_ != 1 ? room : dy, room);
  return scale_ != 1 || drops(pass) ? room : dy;
}

}  // namespace zerofleet
