#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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
  /// `shape`: of leaves before they are trimmed.
  LeafHead(const ModelContext& model, const PassShape& shape);

  /// As LossHead::pack().
  void pack(const ModelContext& model, const void* weight) { head_.pack(model, weight); }

  /// What it reads.
  struct Input {
    const TrimmedLeaf& leaf;
    Matrix normed;  // (M, D) of all the leaf's rows; its contents are lost in a backward
    Matrix room;    // (M, D) for the rows with targets
  };

  void forward(const ModelContext& model, const Input& input);
  /// Returns d loss / d log_prob for each row with which the head computes, when the losses are known.
  using RowDerivatives = std::function<std::vector<double>(const LeafHead& head)>;
  /// Those of an objective.
  std::vector<double> derivatives_of(const SequenceObjective& objective) const;
  std::vector<double> derivatives_of(const TargetObjective& objective) const;
  /// The gradient of grad_scale · loss_sum, or of grad_scale · the loss with these derivatives, goes to to.normed (M,
  /// D) and to.weight.
  void forward_backward(const ModelContext& model, const Input& input, const LossHead::Gradients& to,
                        const RowDerivatives& derivatives);

  /// The losses of the last pass, those of each sequence, and the log-probabilities of targets (B, T); on a CUDA device
  /// they wait for them.
  LeafResult result() const { return head_.result(rows_->targets()); }
  std::vector<SequenceScore> scores() const { return head_.scores(rows_->targets(), rows_->sequences(), shape_.batch); }
  std::vector<float> log_probs() const;

  std::size_t activation_bytes() const { return head_.activation_bytes(); }
  std::size_t packed_bytes() const { return head_.packed_bytes(); }
  const std::shared_ptr<PackedMatrix>& packed() const { return head_.packed(); }
  double backward_seconds() const { return head_.backward_seconds(); }

 private:
  /// Returns the rows with targets.
  Matrix pick(const ModelContext& model, const Input& input);
  LossHead head_;
  std::optional<TargetRows> rows_;      // of the last leaf
  std::vector<std::size_t> positions_;  // of rows_, in (B, T)
  PassShape shape_;
  IndexUpload targets_upload_, rows_upload_, indices_upload_;
};

}  // namespace zerofleet
