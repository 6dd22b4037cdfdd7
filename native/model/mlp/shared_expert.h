#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/layers/linear.h"
#include "model/mlp/mlp.h"

namespace zerofleet {

/// An expert that all tokens pass through besides those that the router chose: y += sigmoid(gate of x) · MLP(x), where
/// the gate is one logit for each token.
class SharedExpert {
 public:
  SharedExpert(const ModelContext& model, const MlpSpec& spec);

  /// State that the forward keeps for the backward.
  struct Kept {
    Kept(const ModelContext& model, const PassShape& shape, const SharedExpert& expert);
    std::size_t num_bytes() const;

    std::unique_ptr<Mlp::Kept> mlp;
    Tensor out;    // (M, D) of the MLP
    Tensor logit;  // (M, 1)
    Tensor low;    // (M, low_size()) of the gate's adapter, or empty
  };

  /// Work space of the backward, shared by all layers.
  struct Work {
    Work(const ModelContext& model, const PassShape& shape, const SharedExpert& expert,
         const std::shared_ptr<PackedMatrix>& spare);
    std::size_t num_bytes() const;

    std::unique_ptr<Mlp::Work> mlp;
    Tensor dlogit;  // (M, 1)
    LinearGradients gate;
  };

  void request_forward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests);
  void request_backward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests);
  std::size_t packed_bytes() const { return mlp_->packed_bytes() + gate_.packed_bytes(); }

  /// From x (M, D) all of `kept`.
  void forward(const ModelContext& model, const Pass& pass, const Matrix& x, Kept& kept) const;
  /// After forward(): y (M, D) gets the output besides its contents.
  static void add_to(const ModelContext& model, const Kept& kept, const Matrix& y);
  /// args.dx gets the gradient of x besides its contents. room: (at least 2·M, D), overwritten.
  void backward(const ModelContext& model, const Pass& pass, const Mlp::Backward& args, Kept& kept, Work& work,
                const Matrix& room, GradSink& sink) const;

 private:
  std::unique_ptr<Mlp> mlp_;
  Linear gate_;
};

}  // namespace zerofleet
