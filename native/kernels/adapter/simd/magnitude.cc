#include "kernels/adapter/simd/magnitude.h"

#include "kernels/common/simd/elements.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

constexpr int kBlockRows = 4;  // rows that share the loads of `right`

/// Calls add(row, v) for a vector of columns of kRows rows of V.
template <class T, int kRows, class Part, class Add>
ZF_INLINE void adapted(const AdaptedSquaresArgs& args, int64_t row, int64_t col, Part part, const Add& add) {
  vf v[kRows];
  for (int j = 0; j < kRows; ++j) v[j] = load(row_of<T>(args.weight, row + j) + col, part);
  for (int64_t r = 0; r < args.rank; ++r) {
    const vf right = load(args.right + r * args.cols + col, part);
    for (int j = 0; j < kRows; ++j) v[j] = fma(set1(args.left[(row + j) * args.rank + r]), right, v[j]);
  }
  for (int j = 0; j < kRows; ++j) add(j, v[j]);
}

template <class T, int kRows>
void row_squares(const AdaptedSquaresArgs& args, int64_t row) {
  vf squares[kRows] = {};
  sweep(args.cols, [&](int64_t col, auto part) {
    adapted<T, kRows>(args, row, col, part, [&](int j, vf v) { squares[j] = fma(v, v, squares[j]); });
  });
  for (int j = 0; j < kRows; ++j) args.sums[row + j] = sum_lanes(squares[j]);
}

template <class T, int kRows>
void column_squares(const AdaptedSquaresArgs& args, int64_t row) {
  sweep(args.cols, [&](int64_t col, auto part) {
    vf sum = load(args.sums + col, part);
    adapted<T, kRows>(args, row, col, part, [&](int, vf v) { sum = fma(v, v, sum); });
    store(args.sums + col, sum, part);
  });
}

}  // namespace

void adapted_row_squares(const AdaptedSquaresArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) {
    int64_t row = 0;
    for (; row + kBlockRows <= args.rows; row += kBlockRows) row_squares<T, kBlockRows>(args, row);
    for (; row < args.rows; ++row) row_squares<T, 1>(args, row);
  });
}

void adapted_column_squares(const AdaptedSquaresArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) {
    int64_t row = 0;
    for (; row + kBlockRows <= args.rows; row += kBlockRows) column_squares<T, kBlockRows>(args, row);
    for (; row < args.rows; ++row) column_squares<T, 1>(args, row);
  });
}

void scale_columns_of_rows(const ColumnScalingArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) {
    const T* bias = static_cast<const T*>(args.bias);
    for (int64_t row = 0; row < args.rows; ++row) {
      const T* x = row_of<T>(args.x, row);
      T* y = row_of<T>(args.y, row);
      sweep(args.cols, [&](int64_t i, auto part) {
        const vf scaled = load(args.factors + i, part) * load(x + i, part);
        store(y + i, bias == nullptr ? scaled : scaled + load(bias + i, part), part);
      });
    }
  });
}

void add_row_product(float* target, const void* a, const void* b, int64_t cols, DType dtype) {
  with_model_element(dtype, [&]<class T>(T*) {
    const T* left = static_cast<const T*>(a);
    const T* right = static_cast<const T*>(b);
    sweep(cols, [&](int64_t i, auto part) {
      store(target + i, fma(load(left + i, part), load(right + i, part), load(target + i, part)), part);
    });
  });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
