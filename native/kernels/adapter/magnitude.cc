#include "kernels/adapter/magnitude.h"

#include <iterator>

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {
namespace {

bool is_dense(const ConstMatrix& matrix, DType dtype, std::int64_t rows, std::int64_t cols) {
  return matrix.dtype == dtype && matrix.rows == rows && matrix.cols == cols && matrix.stride == cols;
}

}  // namespace

void direction_norms(const Context& ctx, const DirectionNorms& args) {
  const AdaptedMatrix& m = args.matrix;
  require(m.weight.data != nullptr && std::ssize(args.norms) == m.out(), "invalid_argument",
          "direction_norms: norms need one element per output of the matrix");
  require(m.rank() == 0 ||
              (is_dense(m.down, m.weight.dtype, m.rank(), m.in()) && is_dense(m.up, m.weight.dtype, m.out(), m.rank())),
          "invalid_argument", "direction_norms: the factors have other shapes than their matrix");
  require(args.magnitude == nullptr || (std::ssize(args.factors) == m.out() && std::ssize(args.inverses) == m.out()),
          "invalid_argument", "direction_norms: factors and inverses need one element per output of the matrix");
  backend_of(ctx).direction_norms(ctx, args);
}

void scale_columns(const Context& ctx, const ColumnScaling& args) {
  require(same_shape(args.x, args.y) && args.x.cols == std::ssize(args.factors), "invalid_argument",
          "scale_columns: x and y must have one shape and dtype, and a factor per column");
  backend_of(ctx).scale_columns(ctx, args);
}

void magnitude_gradient(const Context& ctx, const MagnitudeGradient& args) {
  require(same_shape(args.dy, args.z) && args.dy.cols == std::ssize(args.gradient) &&
              args.inverses.size() == args.gradient.size(),
          "invalid_argument", "magnitude_gradient: dy and z must have one shape and dtype, and a gradient per column");
  backend_of(ctx).magnitude_gradient(ctx, args);
}

}  // namespace zerofleet
