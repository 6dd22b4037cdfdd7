#pragma once

#include <memory>
#include <optional>
#include <span>

#include "model/common/block.h"

namespace zerofleet {

/// The residual stream in transit to a norm: x + delta, or x alone where delta has no data.
struct Residual {
  Matrix x;      // (M, D)
  Matrix delta;  // (M, D)
  Matrix sum;    // (M, D) where x + delta goes, rounded to the dtype; used with delta only
};

/// A norm over the rows of the residual stream, fused with the addition before it.
class Norm {
 public:
  /// Input of the backward beside the norm's input.
  struct Kept {
    Values<float> rstd;  // (M)
    Values<float> mean;  // (M), of LayerNorm
    std::size_t num_bytes() const { return bytes_of(rstd, mean); }
  };

  /// The gradients of one norm's parameters; shared by all norms of a model. Empty until the backward of a norm that is
  /// trained.
  struct Work {
    Values<float> dweight;  // (D)
    Values<float> dbias;    // (D), of LayerNorm
    std::size_t num_bytes() const { return bytes_of(dweight, dbias); }
  };

  virtual ~Norm() = default;
  virtual Kept make_kept(const ModelContext& model, std::int64_t rows) const = 0;
  virtual void bind(ParamPointers params) = 0;

  /// y = norm(x + delta). y: (M, D).
  virtual void forward(const ModelContext& model, const Residual& residual, const Matrix& y, Kept& kept) const = 0;

  struct Backward {
    Matrix dy;        // (M, D)
    Matrix x;         // (M, D) the input of the normalisation
    Matrix residual;  // (M, D) is added to dx, or no data; may be dx
    Matrix dx;        // (M, D)
  };
  virtual void backward(const ModelContext& model, const Backward& pass, const Kept& kept, Work& work,
                        GradSink& sink) const = 0;
};

std::unique_ptr<Norm> make_rms_norm(const NormSpec& spec);
std::unique_ptr<Norm> make_layer_norm(const NormSpec& spec);
/// Makes the norm of the configuration; null without a spec.
std::unique_ptr<Norm> make_norm(const ModelConfig& config, const std::optional<NormSpec>& spec);

}  // namespace zerofleet
