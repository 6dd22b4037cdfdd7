#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/transformer/transformer.h"

namespace zerofleet {

/// A leaf whose reference scores are requested. Each file has a table of sequences, and with KTO another one of its
/// mismatched sequences.
struct ReferenceRows {
  LeafInput input;
  std::size_t table = 0;
  std::span<const std::int64_t> sequences;  // (B) indices in the table, or kNoSequence
};

/// The model that a preference objective compares with.
class ReferenceModel {
 public:
  virtual ~ReferenceModel() = default;
  /// Returns the log-probabilities, (B).
  virtual std::vector<double> log_probs(const ReferenceRows& rows) = 0;
};

/// The model without its adapter.
class BaseReference final : public ReferenceModel {
 public:
  explicit BaseReference(Transformer& model) : model_(model) {}
  std::vector<double> log_probs(const ReferenceRows& rows) override;

 private:
  Transformer& model_;
};

/// Log-probabilities under the model at the start of the training, table after table.
class StoredReference final : public ReferenceModel {
 public:
  /// `sizes`: number of sequences in each table.
  explicit StoredReference(std::span<const std::int64_t> sizes);

  /// Throws Error{"invalid_argument"} before set().
  std::vector<double> log_probs(const ReferenceRows& rows) override;

  std::size_t size() const { return begins_.back(); }
  /// Throws Error{"invalid_argument"} unless there are size() of them.
  void set(std::vector<double> log_probs);

 private:
  std::vector<std::size_t> begins_;  // first index of each table, and the end
  std::vector<double> log_probs_;    // empty before set()
};

}  // namespace zerofleet
