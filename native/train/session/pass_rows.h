#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "model/common/leaf_input.h"
#include "model/objective/pass_loss.h"

namespace zerofleet {

/// Rows of a pass, one behind the other. Arrays other than `lengths` have an element per token.
struct PassRows {
  std::vector<std::int32_t> lengths;                  // (rows)
  std::vector<std::int32_t> tokens, targets;          // the token that each position predicts, or -100
  std::vector<float> weights, log_probs, advantages;  // as in PassLeaf; empty where they are not given

  std::int64_t num_rows() const { return std::ssize(lengths); }
};

/// Sizes that rows must fit.
struct PassLimits {
  std::int64_t max_rows = 0;
  std::int64_t leaf_rows = 0;        // B
  std::int64_t sequence_length = 0;  // T
  std::int64_t vocab_size = 0;
  bool has_base = false;  // beside what is trained
};

/// Throws Error{"invalid_argument"} or Error{"token_out_of_vocab"} for rows that do not fit the loss or the shape, on
/// every rank alike.
void check(const PassRows& rows, const PassLoss& loss, const PassLimits& limits);

/// Leaves of B consecutive rows. Rows of the last leaf beyond the pass's end are empty.
class PassLeaves {
 public:
  /// `rows` were checked, and must outlive the object.
  PassLeaves(const PassRows& rows, const PassLimits& limits);

  std::int64_t num_leaves() const { return (rows_.num_rows() + leaf_rows_ - 1) / leaf_rows_; }
  /// Tokens of the rows of a leaf, and those of the leaves before.
  std::int64_t num_tokens(std::int64_t leaf) const { return begin_of(leaf + 1) - begin_of(leaf); }
  std::int64_t begin_of(std::int64_t leaf) const {
    return begins_[static_cast<std::size_t>(std::min(leaf * leaf_rows_, rows_.num_rows()))];
  }
  void load(std::int64_t leaf);
  /// The loaded leaf.
  LeafInput input() const { return {tokens_, targets_, {}, {}, lengths_}; }
  PassLeaf contents(std::span<const float> base_log_probs) const {
    return {length_, targets_, weights_, log_probs_, advantages_, base_log_probs};
  }

  /// Calls visit(row, i, index) for each token of a leaf: the i-th of a row of the leaf, and its index in the arrays of
  /// the rows.
  template <class Visit>
  void each_token(std::int64_t leaf, Visit&& visit) const {
    const std::int64_t first = leaf * leaf_rows_, end = std::min(first + leaf_rows_, rows_.num_rows());
    for (std::int64_t number = first; number < end; ++number) {
      const auto at = static_cast<std::size_t>(number);
      for (std::int64_t i = 0; i < rows_.lengths[at]; ++i) {
        visit(number - first, i, static_cast<std::size_t>(begins_[at] + i));
      }
    }
  }

 private:
  const PassRows& rows_;
  std::int64_t leaf_rows_, length_;
  std::vector<std::int64_t> begins_;  // of each row, and the end of the last
  std::vector<std::int32_t> lengths_, tokens_, targets_;
  std::vector<float> weights_, log_probs_, advantages_;
};

}  // namespace zerofleet
