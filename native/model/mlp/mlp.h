#pragma once

#include <memory>
#include <vector>

#include "model/layers/linear.h"

namespace zerofleet {

/// The position-wise part of a layer.
class Mlp {
 public:
  /// State that a forward keeps for its backward; each kind of MLP has its own.
  struct Kept {
    virtual ~Kept() = default;
    virtual std::size_t num_bytes() const = 0;
  };

  /// Work space of the backward, shared by all layers.
  struct Work {
    virtual ~Work() = default;
    virtual std::size_t num_bytes() const = 0;
  };

  virtual ~Mlp() = default;
  virtual std::unique_ptr<Kept> make_kept(const ModelContext& model, const PassShape& shape) const = 0;
  /// `spare`: an operand that is free during this block's backward.
  virtual std::unique_ptr<Work> make_work(const ModelContext& model, const PassShape& shape,
                                          const std::shared_ptr<PackedMatrix>& spare) const = 0;

  virtual void request_forward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests) = 0;
  virtual void request_backward(const ModelContext& model, ParamPointers params,
                                std::vector<PackRequest>& requests) = 0;
  virtual std::size_t packed_bytes() const = 0;

  /// From x (M, D), the normed stream, all that the backward reads and does not compute again.
  virtual void activate(const ModelContext& model, const Pass& pass, const Matrix& x, Kept& kept) const = 0;
  /// After activate() of x: y (M, D), the addend of the stream.
  virtual void project(const ModelContext& model, const Pass& pass, const Matrix& x, Kept& kept,
                       const Matrix& y) const = 0;

  struct Backward {
    Matrix x;   // (M, D) of the forward
    Matrix dy;  // (M, D)
    Matrix dx;  // (M, D)
  };
  virtual void backward(const ModelContext& model, const Pass& pass, const Backward& args, Kept& kept, Work& work,
                        GradSink& sink) const = 0;
};

/// `inner`: the width between its products.
std::unique_ptr<Mlp> make_dense_mlp(const ModelContext& model, const DenseSpec& spec, std::int64_t inner);
/// A mixture of experts: each token goes through the few that its router chooses.
std::unique_ptr<Mlp> make_moe_mlp(const ModelContext& model, const MlpSpec& spec);
/// Makes the MLP of the configuration.
std::unique_ptr<Mlp> make_mlp(const ModelContext& model, const MlpSpec& spec);

}  // namespace zerofleet
