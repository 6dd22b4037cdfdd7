#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/common/transit.h"
#include "model/objective/sequence_score.h"
#include "model/transformer/loss_head.h"
#include "model/transformer/target_rows.h"
#include "model/transformer/trimmed_leaf.h"

namespace zerofleet {

/// The output projection and the loss of a leaf: a LossHead over TargetRows.
class LeafHead {
 public:
  LeafHead(const ModelContext& model, std::int64_t max_rows);

  /// As LossHead::pack().
  void pack(const ModelContext& model, const void* weight) { head_.pack(model, weight); }

  /// What it reads.
  struct Input {
    const TrimmedLeaf& leaf;
    Matrix normed;  // (M, D) of all the leaf's rows; its contents are lost in a backward
    Matrix room;    // (M, D) for the rows with targets
  };

  void forward(const ModelContext& model, const Input& input);
  /// The gradient of grad_scale · loss_sum, or of grad_scale · objective, goes to to.normed (M, D) and to.weight.
  void forward_backward(const ModelContext& model, const Input& input, const LossHead::Gradients& to,
                        const SequenceObjective& objective);

  /// The losses of the last pass, and those of each sequence; on a CUDA device both wait for them.
  LeafResult result() const { return head_.result(rows_->targets()); }
  std::vector<SequenceScore> scores() const { return head_.scores(rows_->targets(), rows_->sequences(), batch_); }

  std::size_t activation_bytes() const { return head_.activation_bytes(); }
  std::size_t packed_bytes() const { return head_.packed_bytes(); }
  double backward_seconds() const { return head_.backward_seconds(); }

 private:
  /// Returns the rows with targets.
  Matrix pick(const ModelContext& model, const Input& input);
  /// Factors of the losses of rows_, with which the gradient is that of scale · objective.
  std::vector<float> factors_of(const SequenceObjective& objective, float scale) const;

  LossHead head_;
  std::optional<TargetRows> rows_;  // of the last leaf
  std::int64_t batch_ = 0;          // its sequences
  IndexUpload targets_upload_, rows_upload_, indices_upload_;
};

}  // namespace zerofleet
