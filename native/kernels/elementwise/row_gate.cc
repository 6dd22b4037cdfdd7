#include "kernels/elementwise/row_gate.h"

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {
namespace {

void check(const ConstMatrix& gate, const ConstMatrix& x, const ConstMatrix& y) {
  require(same_shape(x, y) && gate.rows == x.rows && gate.cols == 1 && gate.dtype == x.dtype, "invalid_argument",
          "row gate: needs two matrices of one shape, and one gate for each row");
}

}  // namespace

void add_gated(const Context& ctx, const ConstMatrix& gate, const ConstMatrix& x, const Matrix& y) {
  check(gate, x, y);
  backend_of(ctx).add_gated(ctx, gate, x, y);
}

void add_gated_backward(const Context& ctx, const GatedBackward& args) {
  check(args.gate, args.x, args.dy);
  check(args.dgate, args.dx, args.dy);
  backend_of(ctx).add_gated_backward(ctx, args);
}

}  // namespace zerofleet
