#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/attention/attention.h"
#include "model/layers/dropout.h"
#include "model/layers/linear.h"
#include "model/layers/qk_norm.h"

namespace zerofleet {

AttentionShape attention_shape(const ModelConfig& config, const PassShape& shape);

/// Causal self-attention of one layer: projections, norm and rotation of queries and keys where the model has them,
/// attention, output projection.
class AttentionBlock {
 public:
  AttentionBlock(const ModelContext& model, const LayerSpec& spec, std::size_t number);

  struct Kept {
    Kept(const ModelContext& model, const PassShape& shape, const AttentionBlock& block);
    std::size_t num_bytes() const;

    Tensor qkv;         // (M, QKV) after rotation
    Tensor attended;    // (M, Q)
    Values<float> lse;  // (B, H, T), or (H, T) of each sequence of its own length
    std::optional<QkNorm::Kept> qk_norm;
    Tensor qkv_low, output_low;  // (M, low_size()) of adapters, or empty
  };

  struct Work {
    Work(const ModelContext& model, const PassShape& shape, const AttentionBlock& block);
    std::size_t num_bytes() const;

    Tensor dqkv;       // (M, QKV)
    Tensor dattended;  // (M, Q)
    LinearGradients qkv, output;
    QkNorm::Work qk_norm;
  };

  void request_forward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests);
  void request_backward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests);
  std::size_t packed_bytes() const { return qkv_.packed_bytes() + output_.packed_bytes(); }

  /// x: (M, D) the normed stream; y: (M, D) the addend of the stream.
  void forward(const ModelContext& model, const Pass& pass, const Matrix& x, const Matrix& y, Kept& kept) const;

  struct Backward {
    Matrix x;   // (M, D) of the forward
    Matrix dy;  // (M, D)
    Matrix dx;  // (M, D)
  };
  void backward(const ModelContext& model, const Pass& pass, const Backward& args, const Kept& kept, Work& work,
                GradSink& sink) const;

 private:
  /// Rows that one call of a kernel takes.
  struct Call {
    std::int64_t first, count;
    AttentionShape shape;
    AttentionOptions options;

    Matrix of(const Matrix& rows) const { return rows.row_slice(first, count); }
    template <class T>
    std::span<T> of(std::span<T> lse) const {
      const auto heads = static_cast<std::size_t>(shape.num_heads);
      return lse.subspan(static_cast<std::size_t>(first) * heads, static_cast<std::size_t>(count) * heads);
    }
  };

  void project(const ModelContext& model, const Pass& pass, const Matrix& x, const Matrix& qkv, Kept& kept) const;
  void attend(const ModelContext& model, const Pass& pass, const Matrix& qkv, const Matrix& out, Kept& kept) const;
  std::vector<Call> calls(const ModelContext& model, const Pass& pass) const;

  std::size_t number_;
  std::int64_t window_;
  std::uint32_t dropout_site_;
  Linear qkv_, output_;
  std::optional<QkNorm> qk_norm_;
};

}  // namespace zerofleet
