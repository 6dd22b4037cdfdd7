#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/device/buffer.h"
#include "core/param_spec.h"
#include "model/config/adapter_config.h"
#include "model/layers/linear_adapter.h"

namespace zerofleet {

/// An adapter of some rows of a pass; other rows may have other adapters over the same base. It has AdapterType::kLora,
/// saves no modules, and targets no expert's matrix. So its term of a row is a product of that row alone.
class ServedAdapter {
 public:
  /// Its parameters, in the order of their values. Throws Error{"adapter_not_servable"} for one that cannot be beside
  /// others, Error{"invalid_model_config"}.
  static std::vector<ParamSpec> params(const ModelConfig& base, const AdapterConfig& adapter);

  /// base: of a model without an adapter; rows: the most of a pass; values: of each of params(), converted to the
  /// compute dtype.
  ServedAdapter(const ModelContext& base, const AdapterConfig& adapter, std::int64_t rows,
                std::span<const std::vector<std::byte>> values);

  /// That of the Linear whose first matrix is the parameter `weight`, or null.
  const LinearAdapter* linear_of(std::size_t weight) const;
  /// Room for its low-rank rows, (rows, largest low_size()).
  const Tensor& low() const { return low_; }
  std::size_t num_bytes() const;

 private:
  std::vector<Buffer> values_;
  std::map<std::size_t, LinearAdapter> linears_;
  Tensor low_;
};

/// The rows [begin, end) of a pass and their adapter.
struct AdaptedRows {
  const ServedAdapter* adapter = nullptr;
  std::int64_t begin = 0, end = 0;
  const std::int32_t* range =
      nullptr;  // begin and end in a CUDA device's memory, where products have all rows; null on a CPU

  /// These rows of a matrix with those of the pass.
  Matrix rows_of(const Matrix& matrix) const { return matrix.row_slice(begin, end - begin); }
};

/// Adds what their adapters add to rows of a Linear's outputs `ys`, (M, out) of each of its matrices, from its input x
/// (M, in). `weight`: the parameter of its first matrix.
void add_adapted_rows(const ModelContext& model, std::span<const AdaptedRows> rows, std::size_t weight, const Matrix& x,
                      std::span<const Matrix> ys);

}  // namespace zerofleet
