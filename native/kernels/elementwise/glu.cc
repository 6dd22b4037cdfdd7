#include "kernels/elementwise/glu.h"

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {
namespace {

void require_halves(const ConstMatrix& gate_up, const ConstMatrix& act) {
  require(gate_up.rows == act.rows && gate_up.cols == 2 * act.cols && gate_up.dtype == act.dtype, "invalid_argument",
          "glu: gate_up must have the rows and twice the columns of act");
}

}  // namespace

void glu(const Context& ctx, GluKind kind, const ConstMatrix& gate_up, const Matrix& act) {
  require_halves(gate_up, act);
  backend_of(ctx).glu(ctx, kind, gate_up, act);
}

void glu_backward(const Context& ctx, GluKind kind, const ConstMatrix& gate_up, const ConstMatrix& dact,
                  const Matrix& dgate_up) {
  require_halves(gate_up, dact);
  require_halves(dgate_up, dact);
  backend_of(ctx).glu_backward(ctx, kind, gate_up, dact, dgate_up);
}

}  // namespace zerofleet
