#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "model/common/block.h"
#include "model/common/transit.h"
#include "model/objective/sequence_score.h"
#include "model/transformer/decoder.h"
#include "model/transformer/transformer.h"

namespace zerofleet {

/// Rows of logits, and of their gradients, that exist at once.
struct LogitRows {
  std::int64_t logits = 0;
  std::int64_t gradients = 0;
  friend bool operator==(const LogitRows&, const LogitRows&) = default;
};

/// Returns the rows that the limits of the device (Backend) allow for up to max_rows. They are multiples of 64, at
/// least 64, and divide max_rows into chunks of nearly the same length.
LogitRows logit_rows(const Device& device, std::int64_t vocab_size, DType dtype, std::int64_t max_rows);

/// The output projection fused with softmax cross-entropy, a chunk of token rows at a time, as many as gradients of
/// logits exist at once. What goes over the whole weight, above all its gradient, is done once per chunk. On a CPU
/// results do not depend on the rows.
class LossHead {
 public:
  LossHead(const ModelContext& model, std::int64_t max_rows);
  /// `packed`: the packed weight of another head with the same parameters, which packs it; null: of its own.
  LossHead(const ModelContext& model, std::int64_t max_rows, const LogitRows& rows,
           std::shared_ptr<PackedMatrix> packed = nullptr);

  /// weight: (V, D) of the compute dtype; it must stay where it is until the next call.
  void pack(const ModelContext& model, const void* weight);

  /// Destination of the gradient of grad_scale · loss_sum, or of the sum over rows of factor · loss.
  struct Gradients {
    Matrix normed;  // (M, D) compute dtype
    Matrix weight;  // (V, D) fp32, overwritten; without data it is not computed
    float grad_scale = 0;
    std::span<const float> factors = {};  // (M) on the host, instead of grad_scale
  };

  /// normed: (M, D), M ≤ max_rows; targets: (M) in [0, V) or -100. gradients may be null.
  void run(const ModelContext& model, const Matrix& normed, const Indices& targets, const Gradients* gradients);

  /// Returns factors (M); called once, when the losses are known.
  using Factors = std::function<std::span<const float>()>;
  /// The same with factors that depend on the losses. The logits are computed once if kept_logit_rows() ≥ M, otherwise
  /// twice; the same bits.
  void run(const ModelContext& model, const Matrix& normed, const Indices& targets, Gradients gradients,
           const Factors& factors);
  std::int64_t kept_logit_rows() const;

  /// (M) The losses of the last run(); on a CUDA device this waits for them.
  std::span<const float> losses() const { return losses_.on_host(); }
  /// Their sum; `targets`: those of the run.
  LeafResult result(const Indices& targets) const;
  /// The same for each of `batch` sequences; sequences: (M) the sequence of each row.
  std::vector<SequenceScore> scores(const Indices& targets, std::span<const std::int32_t> sequences,
                                    std::int64_t batch) const;

  /// What follows the first next.size() rows of normed (N, D), N ≤ the rows of logits; valid until the next call.
  void next_tokens(const ModelContext& model, const Matrix& normed, std::span<NextToken> next);

  /// Bytes of the logits and operands of a chunk of rows, and of the packed weight.
  std::size_t activation_bytes() const;
  std::size_t packed_bytes() const { return forward_->num_bytes(); }
  /// The packed weight. (D, V)
  const std::shared_ptr<PackedMatrix>& packed() const { return forward_; }

  /// Seconds of the last run() that belong to the backward.
  double backward_seconds() const { return backward_seconds_; }

 private:
  /// Sets the factors of the current run.
  void use_factors(const ModelContext& model, std::span<const float> factors);
  /// The memory of dlogits_ as fp32 logits.
  Matrix kept_logits(std::int64_t rows) const;
  void make_dlogits(const ModelContext& model);
  /// normed (rows, D), logits (rows, V)
  void compute_logits(const ModelContext& model, const Matrix& normed, const Matrix& logits);
  /// The losses of all rows, whose logits stay in `kept`.
  void keep_logits(const ModelContext& model, const Matrix& normed, const Indices& targets, const Matrix& kept);
  void cross_entropy_of(const ModelContext& model, const Matrix& logits, const Indices& targets, std::int64_t first_row,
                        const Matrix& dlogits, const Gradients* gradients);
  /// Losses and, unless gradients are null, dlogits (rows, V) of some rows, the first of which is first_row of the
  /// leaf.
  void chunk_forward(const ModelContext& model, const Matrix& normed, const Indices& targets, std::int64_t first_row,
                     const Matrix& dlogits, const Gradients* gradients);
  void chunk_backward(const ModelContext& model, const Matrix& normed, const Matrix& dlogits,
                      const Gradients& gradients, std::int64_t first_row);

  std::int64_t chunk_rows_;                    // of gradients
  std::shared_ptr<PackedMatrix> forward_;      // (D, V)
  SourceOperand backward_;                     // (V, D)
  PackedMatrix packed_;                        // (chunk rows, D), from the first gradient of the weight on
  Tensor logits_;                              // (rows of logits, V) fp32
  Tensor dlogits_;                             // (chunk rows, V) compute dtype, from the first backward on
  Readback losses_;                            // (M)
  std::optional<FloatUpload> factors_upload_;  // (M), from the first factors on
  std::int64_t max_rows_;
  std::span<const float> factors_;        // of the current run, where kernels read them; or empty
  std::optional<IndexUpload> likeliest_;  // (rows of logits), from the first next_tokens() on
  std::vector<float> host_logits_;        // (rows of logits, V), the same
  double backward_seconds_ = 0;
};

}  // namespace zerofleet
