#include "model/layers/dropout.h"

namespace zerofleet {

void Dropout::forward(const ModelContext& model, const Pass& pass, const Matrix& x) const {
  if (pass.dropout && probability_ > 0) dropout(model.ctx, pass.dropout_key(site_), probability_, x, x);
}

Matrix Dropout::backward(const ModelContext& model, const Pass& pass, const Matrix& dy, const Matrix& room) const {
  if (!pass.dropout || probability_ == 0) return dy;
  dropout(model.ctx, pass.dropout_key(site_), probability_, dy, room);
  return room;
}

}  // namespace zerofleet
