// The gradient of a bias: sums over columns.
#include "core/device/context.h"
#include "kernels/common/cuda/column_sums.cuh"
#include "kernels/elementwise/bias.h"
#include "kernels/elementwise/cuda/add_sums.cuh"

namespace zerofleet::cuda {
namespace {

template <class T>
struct BiasTerm {
  static constexpr int kSums = 1;
  Rows<const T> dy;

  __device__ void add(std::int64_t row, std::int64_t, const SumColumns& at, SumLanes (&total)[kSums]) const {
    const SumLanes d = load(dy.row(row), at);
    total[0] = lanes<kColumnWidth>([&](int k) { return total[0].v[k] + d.v[k]; });
  }
};

}  // namespace

void bias_gradient(const Context& ctx, const ConstMatrix& dy, std::span<float> dbias, bool accumulate) {
  const auto sum_into = [&](std::span<float> sums) { cuda::bias_gradient(ctx, dy, sums, false); };
  if (accumulate) return add_sums(ctx, dbias, sum_into);
  with_element(dy.dtype, [&]<class T>(T*) {
    column_sums(ctx, "bias_gradient", BiasTerm<T>{rows_of<T>(dy)},
                {dy.rows, dy.cols, rows_aligned_for<kColumnWidth>(dy)}, {dbias.data()});
  });
}

}  // namespace zerofleet::cuda
