#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/packed_matrix.h"
#include "model/common/block.h"
#include "model/layers/adapter_magnitude.h"

namespace zerofleet {

class LinearAdapter;

/// The gradients of one Linear's adapters, and what they are computed with; shared by all layers.
struct AdapterGradients {
  /// For `rows` at once, with gradients of factors in `dtype`.
  AdapterGradients(const ModelContext& model, const LinearAdapter& adapter, std::int64_t rows, DType dtype);
  std::size_t num_bytes() const;

  /// Gradients of one matrix' factors: (rank, in) and (out, rank).
  struct Factors {
    Tensor down, up;                // for gradients without room in the sink
    Values<float> magnitude;        // (out), or empty
    Matrix down_target, up_target;  // of the current pass: room in the sink, or the above
    PackedMatrix low;               // (R, rank)
  };
  std::vector<Factors> factors;  // of each matrix with an adapter
  PackedMatrix x;                // (R, in), after dropout
};

/// Makes ModelContext::dropped for passes of `rows`: room for the widest input of attention's matrices, and for that of
/// an MLP.
Tensor room_for_dropped(const ModelContext& model, std::int64_t rows);

/// The adapters of a Linear's matrices (AdapterConfig). Their rows pass through `low` = scale · dropout(x) Aᵀ, (M,
/// rank) for each matrix that has one, side by side: the caller keeps it for the backward. Empty where no matrix has
/// one.
///
/// scale is in `low` and in its gradient, so neither the outputs nor the gradients of the factors need it.
///
/// With magnitudes these rows begin with z and dz (AdapterMagnitudes). finish() makes the outputs of these, and they
/// take the index of dy in all products of the backward.
class LinearAdapter {
 public:
  LinearAdapter(const ModelContext& model, const LinearSpecs& matrices, std::int64_t in, bool varies);

  bool empty() const { return parts_.empty(); }
  /// Returns true if forward passes have products of adapters.
  bool is_on(const ModelContext& model) const { return model.adapters_on && !empty(); }
  /// Room for `low`, or an empty tensor.
  Tensor make_low(const ModelContext& model, std::int64_t rows) const {
    return empty() ? Tensor() : model.tensor(rows, low_size());
  }
  /// Columns of `low`, z included.
  std::int64_t low_size() const { return magnitudes_.width() + static_cast<std::int64_t>(parts_.size()) * rank_; }
  const AdapterMagnitudes& magnitudes() const { return magnitudes_; }
  /// `weights`: the Linear's matrices, which magnitudes need.
  void bind(const ModelContext& model, ParamPointers params, std::span<const SourceOperand> weights);

  /// x (M, in) after dropout: x itself, or model.dropped filled.
  Matrix dropped(const ModelContext& model, const Pass& pass, const Matrix& x) const;
  /// low (M, low_size()) from x (M, in), which is dropped already.
  void add_low(const Matrix& x, const Matrix& low, std::vector<GemmProblem>& problems,
               const std::int32_t* row_range = nullptr) const;
  /// y (M, out) += low Bᵀ; with magnitudes z += low Bᵀ.
  void add_outputs(const Matrix& low, const Matrix& y, std::vector<GemmProblem>& problems,
                   const std::int32_t* row_range = nullptr) const;
  /// The same for outputs that lie apart, of all matrices of the Linear.
  void add_outputs(const Matrix& low, std::span<const Matrix> ys, std::vector<GemmProblem>& problems,
                   const std::int32_t* row_range = nullptr) const;
  /// y from z, after all products of the forward; nothing without magnitudes.
  void finish(const ModelContext& model, const Matrix& low, const Matrix& y,
              const std::int32_t* row_range = nullptr) const;
  void finish(const ModelContext& model, const Matrix& low, std::span<const Matrix> ys) const;
  /// dlow (M, low_size()) from the gradient of the products, (M, out).
  void add_low_gradient(const Matrix& dy, const Matrix& dlow, std::vector<GemmProblem>& problems,
                        const std::int32_t* row_range = nullptr) const;

  /// dx (M, in) += dlow A of all parts, through the dropout.
  void input_gradient(const ModelContext& model, const Pass& pass, const Matrix& dlow, const Matrix& dx) const;
  std::size_t num_parts() const { return parts_.size(); }
  /// dx (M, in) += dlow A of one part. Two of them must not be in one call of gemm().
  void add_input_gradient(std::size_t part, const Matrix& dlow, const Matrix& dx, std::vector<GemmProblem>& problems,
                          const std::int32_t* row_range = nullptr) const;

  struct Backward {
    Matrix x;     // (M, in), dropped
    Matrix low;   // (M, low_size())
    Matrix dy;    // (M, out)
    Matrix dlow;  // (M, low_size())
    RowPart part = {};
  };
  /// Adds the products of the factors' gradients, without row_range; the gradients of magnitudes are computed at once.
  void add_weight_gradients(const ModelContext& model, const Backward& args, AdapterGradients& grads, GradSink& sink,
                            std::vector<GemmProblem>& problems, const std::int32_t* row_range = nullptr) const;
  /// Gives the gradients of the Linear's matrix `index` to the sink, if it has an adapter.
  void emit(const ModelContext& model, std::size_t index, AdapterGradients& grads, GradSink& sink) const;
  /// Makes them zeros, for a backward without rows.
  void no_gradient(const ModelContext& model, AdapterGradients& grads) const;

 private:
  friend struct AdapterGradients;
  /// A factor as it lies in memory, and its use as the right operand of products.
  struct Factor {
    std::size_t param = 0;
    SourceOperand along_k, along_n;
    void bind(const ConstMatrix& matrix);
  };
  struct Part {
    std::size_t index = 0;            // in the Linear
    std::int64_t begin = 0, out = 0;  // columns of y
    Factor down, up;                  // (rank, in), (out, rank)
  };
  Matrix low_of(const Matrix& low, std::size_t part) const {
    return low.columns(magnitudes_.width() + static_cast<std::int64_t>(part) * rank_, rank_);
  }
  GemmProblem product(const Matrix& a, const SourceOperand& source, const Matrix& c,
                      const std::int32_t* row_range) const;

  DType dtype_;
  std::int64_t in_ = 0, rank_ = 0;
  float scale_ = 1;
  double dropout_ = 0;
  std::uint32_t site_ = 0;  // of the dropout
  bool varies_ = false;
  std::vector<Part> parts_;
  AdapterMagnitudes magnitudes_;
};

}  // namespace zerofleet
