#pragma once

#include <cstdint>
#include <vector>

#include "model/layers/leaf_input.h"

namespace zerofleet {

/// The leaf of KTO's kl_estimate(): each prompt of a leaf before the completion of the leaf's next sequence, the last
/// before that of the first.
struct MismatchedLeaf {
  std::vector<std::int32_t> tokens, targets;  // (B, T)

  LeafInput input() const { return {tokens, targets}; }
};

/// A sequence's completion are its tokens from the first to the last that counts as a target; its prompt is what stands
/// before. What exceeds T tokens is cut off. Where a sequence or its next one has no targets, the row has none.
/// Throws Error{"invalid_argument"} for a leaf of one sequence, or of tokens that do not fit.
MismatchedLeaf mismatched_leaf(const LeafInput& leaf, std::int64_t batch);

}  // namespace zerofleet
