#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/transformer/transformer.h"

namespace zerofleet {

/// A leaf whose reference is wanted. Tables are numbered: one of each file, and in KTO one of its mismatched sequences.
struct ReferenceRows {
  LeafInput input;
  std::size_t table = 0;
  std::span<const std::int64_t> sequences;  // (B) numbers within the table, or kNoSequence
};

/// The model that a preference objective compares with.
class ReferenceModel {
 public:
  virtual ~ReferenceModel() = default;
  /// (B) log-probabilities.
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

/// Log-probabilities that the model had when the training began, table after table.
class StoredReference final : public ReferenceModel {
 public:
  /// Numbers of sequences of each table.
  explicit StoredReference(std::span<const std::int64_t> sizes);

  /// Throws Error{"invalid_argument"} before set().
  std::vector<double> log_probs(const ReferenceRows& rows) override;

  std::size_t size() const { return begins_.back(); }
  /// Throws Error{"invalid_argument"} for another number of them.
  void set(std::vector<double> log_probs);

 private:
  std::vector<std::size_t> begins_;  // of each table, and the end
  std::vector<double> log_probs_;    // empty before set()
};

}  // namespace zerofleet
