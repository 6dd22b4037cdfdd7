#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/range.h"
#include "model/layers/linear.h"

namespace zerofleet {

/// R rows, sorted by expert: those of the e-th expert of a rank are [first[e], first[e + 1]).
struct ExpertRows {
  std::int64_t count = 0;                      // R
  std::span<const std::int64_t> first;         // on a CPU
  const std::int32_t* device_first = nullptr;  // in the memory of a CUDA device, and the host does not know it
};

/// The experts that this rank computes: SwiGLU MLPs, each over its own rows.
class HeldExperts {
 public:
  HeldExperts(const ModelContext& model, std::span<const DenseSpec> specs);

  /// Low-rank rows of the experts' adapters, or their gradients: (R, low_size()) of each Linear, empty without
  /// adapters.
  struct LowRows {
    void resize(const ModelContext& model, std::int64_t rows);
    std::size_t num_bytes() const { return bytes_of(inner, outer); }

    std::int64_t inner_size = 0, outer_size = 0;
    Tensor inner, outer;
  };

  /// State that the forward keeps for the backward. It grows with R.
  struct Kept {
    Kept(const ModelContext& model, std::int64_t rows, const HeldExperts& experts);
    /// Makes room for R = `rows`; previous contents are lost.
    void resize(const ModelContext& model, std::int64_t rows);
    std::size_t num_bytes() const;

    Tensor gathered;  // (R, D) the experts' input
    Tensor inner;     // (R, 2·I)
    Tensor act;       // (R, I)
    LowRows low;      // of adapters
  };

  /// Work space of the backward, shared by all layers.
  struct Work {
    Work(const ModelContext& model, std::int64_t rows, const HeldExperts& experts);
    void resize(const ModelContext& model, std::int64_t rows);
    std::size_t num_bytes() const;

    Tensor dinner;                 // (R, 2·I)
    Tensor dact;                   // (R, I)
    LowRows dlow;                  // of adapters
    LinearGradients inner, outer;  // of one expert at a time
  };

  void request_forward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests);
  void request_backward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests);
  std::size_t packed_bytes() const;

  /// From kept.gathered to out (R, D).
  void forward(const ModelContext& model, const ExpertRows& rows, const Kept& kept, const Matrix& out) const;

  /// drows (R, D): the gradients of out on entry, of kept.gathered on return. Emits each parameter's gradient, the last
  /// one first; zeros for an expert without rows.
  void backward(const ModelContext& model, const ExpertRows& rows, const Kept& kept, const Matrix& drows, Work& work,
                GradSink& sink) const;

 private:
  struct Expert {
    Expert(const ModelContext& model, const DenseSpec& spec);
    Linear inner, outer;
  };

  /// The rows of one expert: these, or the subset of these that only the device knows.
  struct Part {
    Part(const ExpertRows& rows, std::size_t expert);
    Range rows;
    const std::int32_t* row_range = nullptr;
  };

  /// Adds the products of one expert, which has rows, or may have some.
  using AddProducts = std::function<void(const Expert& expert, const Part& part, std::vector<GemmProblem>& problems)>;
  void on_all(const ModelContext& model, const ExpertRows& rows, const AddProducts& add) const;
  /// One matrix of every expert.
  using LinearOf = Linear Expert::*;
  void forward_of(const ModelContext& model, const ExpertRows& rows, LinearOf linear, const Matrix& x, const Matrix& y,
                  const Tensor& low) const;
  void input_gradient_of(const ModelContext& model, const ExpertRows& rows, LinearOf linear, const Matrix& dy,
                         const Matrix& dx, const Tensor& dlow) const;
  void low_gradient_of(const ModelContext& model, const ExpertRows& rows, LinearOf linear, const Matrix& dy,
                       const Tensor& dlow) const;
  LowRows low_rows() const;
  void weight_gradients(const ModelContext& model, const Expert& expert, const Part& part, const Kept& kept,
                        const Matrix& drows, Work& work, GradSink& sink) const;

  std::vector<Expert> experts_;
};

}  // namespace zerofleet
