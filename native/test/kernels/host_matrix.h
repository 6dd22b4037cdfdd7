#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "core/dtype.h"
#include "kernels/common/matrix.h"
#include "test/all_dtypes.h"
#include "test/shared_bytes.h"

namespace zerofleet::test {

/// A matrix that tests fill and read element by element and all devices reach, with rows `gap` elements further apart
/// than they are long.
class HostMatrix {
 public:
  HostMatrix(DType dtype, std::int64_t rows, std::int64_t cols, std::int64_t gap = 0)
      : dtype_(dtype),
        rows_(rows),
        cols_(cols),
        stride_(cols + gap),
        bytes_(static_cast<std::size_t>(rows * stride_) * size_of(dtype)) {}

  static HostMatrix random(DType dtype, std::int64_t rows, std::int64_t cols, std::mt19937& random,
                           std::int64_t gap = 0, float spread = 1.0F) {
    HostMatrix matrix(dtype, rows, cols, gap);
    std::normal_distribution<float> normal(0.0F, spread);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < cols; ++j) matrix.set(i, j, normal(random));
    }
    return matrix;
  }

  double at(std::int64_t row, std::int64_t col) const {
    switch (dtype_) {
      case DType::kF32:
        return static_cast<double>(element<float>(row, col));
      case DType::kBF16:
        return static_cast<double>(to_float(element<bf16>(row, col)));
      case DType::kF16:
        return static_cast<double>(to_float(element<f16>(row, col)));
    }
    return 0;
  }
  void set(std::int64_t row, std::int64_t col, float value) {
    switch (dtype_) {
      case DType::kF32:
        return put(row, col, value);
      case DType::kBF16:
        return put(row, col, to_bf16(value));
      case DType::kF16:
        return put(row, col, to_f16(value));
    }
  }
  Matrix view() { return {bytes_.data(), dtype_, rows_, cols_, stride_}; }
  DType dtype() const { return dtype_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  friend bool operator==(const HostMatrix& a, const HostMatrix& b) { return a.bytes_ == b.bytes_; }

 private:
  std::size_t offset(std::int64_t row, std::int64_t col) const {
    return static_cast<std::size_t>(row * stride_ + col) * size_of(dtype_);
  }
  template <class T>
  T element(std::int64_t row, std::int64_t col) const {
    T value;
    std::memcpy(&value, bytes_.data() + offset(row, col), sizeof value);
    return value;
  }
  template <class T>
  void put(std::int64_t row, std::int64_t col, T value) {
    std::memcpy(bytes_.data() + offset(row, col), &value, sizeof value);
  }

  DType dtype_;
  std::int64_t rows_, cols_, stride_;
  SharedBytes bytes_;
};

using Table = std::vector<std::vector<double>>;  // a matrix in float64

inline Table table_of(const HostMatrix& matrix) {
  Table table(static_cast<std::size_t>(matrix.rows()), std::vector<double>(static_cast<std::size_t>(matrix.cols())));
  for (std::int64_t i = 0; i < matrix.rows(); ++i) {
    for (std::int64_t j = 0; j < matrix.cols(); ++j)
      table[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] = matrix.at(i, j);
  }
  return table;
}

/// |actual − expected| over |expected|, both as vectors of all elements.
inline double relative_error(const HostMatrix& actual, const Table& expected) {
  double difference = 0, norm = 0;
  for (std::int64_t i = 0; i < actual.rows(); ++i) {
    for (std::int64_t j = 0; j < actual.cols(); ++j) {
      const double e = expected[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
      difference += (actual.at(i, j) - e) * (actual.at(i, j) - e);
      norm += e * e;
    }
  }
  return std::sqrt(difference / norm);
}

/// The gradient of a float64 function at x by central differences.
inline Table numeric_gradient(const std::function<double(const Table&)>& f, const Table& x) {
  constexpr double kStep = 1e-4;
  Table gradient = x, moved = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < x[i].size(); ++j) {
      moved[i][j] = x[i][j] + kStep;
      const double above = f(moved);
      moved[i][j] = x[i][j] - kStep;
      gradient[i][j] = (above - f(moved)) / (2 * kStep);
      moved[i][j] = x[i][j];
    }
  }
  return gradient;
}

/// Tolerance of a result: rounding of the sums in fp32, or of the result to three times its unit roundoff.
inline double tolerance(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 2e-6;
    case DType::kBF16:
      return 6e-3;
    case DType::kF16:
      return 7.5e-4;
  }
  return 0;
}

/// The relative error that a product of k terms may have on a device. Tensor cores cut off what lies below the last
/// bits of a sum, where sums are not rounded to 16 bits anyway. This is an error of one sign, which grows with k (H100:
/// up to 4.9e-6 at k = 4100).
inline double tolerance_of_product(const Device& device, DType dtype, DType c_dtype, std::int64_t k) {
  const bool cuts_off = device.kind == DeviceKind::kCuda && dtype != DType::kF32 && c_dtype == DType::kF32;
  return tolerance(c_dtype) + (cuts_off ? 1.5e-9 * static_cast<double>(k) : 0);
}

}  // namespace zerofleet::test
