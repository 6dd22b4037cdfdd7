#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "model/layers/block.h"
#include "model/layers/transit.h"
#include "model/transformer/transformer.h"

namespace zerofleet {

/// Rows of logits and of their gradients are made in multiples of this.
constexpr std::int64_t kLogitRows = 64;
/// Logits in fp32 that exist at once: few, so that they stay in the cache from their product to their softmax.
constexpr std::int64_t kMaxLogitsBytes = std::int64_t{16} << 20;
/// Gradients of logits that exist at once.
constexpr std::int64_t kMaxLogitGradientBytes = std::int64_t{64} << 20;

/// Returns the largest multiple of kLogitRows that fits into max_bytes (at least one), but no more than max_rows.
std::int64_t logit_rows_for(std::int64_t row_bytes, std::int64_t max_rows, std::int64_t max_bytes);

/// The output projection fused with softmax cross-entropy, a chunk of token rows at a time, whose gradients of logits fit
/// into max_gradient_bytes; results do not depend on it. What goes over the whole weight, above all its gradient, is done
/// once per chunk.
class LossHead {
 public:
  LossHead(const ModelContext& model, std::int64_t max_rows, std::int64_t max_gradient_bytes = kMaxLogitGradientBytes);

  /// weight: (V, D) of the compute dtype; it must stay where it is until the next call.
  void pack(const ModelContext& model, const void* weight);

  /// Destination of the gradient of grad_scale · loss_sum.
  struct Gradients {
    Matrix normed;  // (M, D) compute dtype
    Matrix weight;  // (V, D) fp32, overwritten
    float grad_scale = 0;
  };

  /// normed: (M, D), M ≤ max_rows; targets: (M) in [0, V) or -100. gradients may be null.
  void run(const ModelContext& model, const Matrix& normed, const Indices& targets, const Gradients* gradients);

  /// The losses of the last run(), whose targets these are; on a CUDA device this waits for them.
  LeafResult result(const Indices& targets) const;

  /// Logits of one row of (1, D); logits: (V).
  void logits(const ModelContext& model, const Matrix& row, std::span<float> logits);

  /// Bytes of the logits and operands of a chunk of rows, and of the packed weight.
  std::size_t activation_bytes() const;
  std::size_t packed_bytes() const { return forward_.num_bytes(); }

  /// Seconds of the last run() that belong to the backward.
  double backward_seconds() const { return backward_seconds_; }

 private:
  /// Losses and, unless it has no data, dlogits (rows, V) of some rows, the first of which is first_row of the leaf.
  void chunk_forward(const ModelContext& model, const Matrix& normed, const Indices& targets,
                     std::int64_t first_row, const Matrix& dlogits, float grad_scale);
  void chunk_backward(const ModelContext& model, const Matrix& normed, const Matrix& dlogits,
                      const Gradients& gradients, std::int64_t first_row);

  std::int64_t chunk_rows_;
  PackedMatrix forward_;                    // (D, V)
  SourceOperand backward_;                  // (V, D)
  PackedMatrix packed_full_, packed_rest_;  // (chunk rows, D), and of the last, shorter chunk
  Tensor logits_;                           // (rows of kMaxLogitsBytes, V) fp32
  Tensor dlogits_;                          // (chunk rows, V) compute dtype, from the first backward on
  Readback losses_;                         // (M)
  double backward_seconds_ = 0;
};

}  // namespace zerofleet
