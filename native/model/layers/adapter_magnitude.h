#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/adapter/magnitude.h"
#include "kernels/gemm/gemm.h"
#include "model/common/block.h"
#include "model/common/values.h"
#include "model/config/param_table.h"

namespace zerofleet {

/// The magnitudes of a Linear's adapters (AdapterType::kDora), none where they have none. An output is factor · z +
/// bias, where z is the product with W + scale · B A and the factor is magnitude / norm (kernels/adapter/magnitude.h).
/// The backward reads z, so the caller's rows of the adapter begin with it: (M, width()), and those of gradients with
/// dz. Columns of matrices without an adapter are not used in z; in dz they are those of dy.
class AdapterMagnitudes {
 public:
  AdapterMagnitudes() = default;
  AdapterMagnitudes(const ModelContext& model, const LinearSpecs& matrices);

  bool empty() const { return parts_.empty(); }
  /// Columns of z: those of all outputs of the Linear, 0 without magnitudes.
  std::int64_t width() const { return width_; }
  /// 12 bytes for each of these columns.
  std::size_t num_bytes() const { return bytes_of(norms_, factors_, inverses_); }

  /// Computes the factor of every output of the Linear's matrix `index`.
  void bind(const ModelContext& model, ParamPointers params, std::size_t index, const AdaptedMatrix& matrix);

  /// Lets products with the Linear's matrices, one for each, become z, without bias, where there is an adapter.
  void keep_products(const Matrix& rows, std::span<GemmProblem> products) const;
  /// z of the matrix `index`.
  Matrix products_of(const Matrix& rows, std::size_t index) const;
  /// y (M, out of the matrix) = factor · z + bias.
  void output(const ModelContext& model, std::size_t index, const Matrix& rows, const Matrix& y,
              const std::int32_t* row_range) const;

  /// Computes dz = factor · dy, (M, width()), into `drows`, and returns it.
  Matrix scale_gradient(const ModelContext& model, const Matrix& dy, const Matrix& drows,
                        const std::int32_t* row_range) const;
  /// The gradient of z in `drows`; dy itself without magnitudes.
  Matrix product_gradient(const Matrix& dy, const Matrix& drows) const {
    return empty() ? dy : drows.columns(0, width_);
  }

  /// Number of the parameter of the matrix `index`, which has an adapter.
  std::optional<std::size_t> param(std::size_t index) const;
  /// gradient (out of the matrix), whole after the last part of the rows.
  void gradient(const ModelContext& model, std::size_t index, const Matrix& dy, const Matrix& rows,
                std::span<float> gradient, const RowPart& rows_here, const std::int32_t* row_range) const;

 private:
  struct Part {
    std::size_t index = 0;
    std::int64_t begin = 0, out = 0;
    std::size_t param = 0;
    std::optional<std::size_t> bias_param;
    const std::byte* bias = nullptr;
  };
  const Part& part_of(std::size_t index) const;
  /// The values of one part's columns.
  static std::span<float> of_part(Values<float>& values, const Part& part);
  static std::span<const float> of_part(const Values<float>& values, const Part& part);

  std::int64_t width_ = 0;
  std::vector<Part> parts_;
  Values<float> norms_, factors_, inverses_;  // (width) each; the factor of a matrix without an adapter is 1
};

}  // namespace zerofleet
