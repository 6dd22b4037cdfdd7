#pragma once

#include <cstdint>
#include <vector>

#include "model/common/leaf_input.h"

namespace zerofleet {

/// The leaf of KTO's kl_estimate(): each prompt of a leaf before the completion of another sequence.
struct MismatchedLeaf {
  std::vector<std::int32_t> tokens, targets;  // (B, T)

  LeafInput input() const { return {tokens, targets}; }
};

/// Row i has the prompt of row i of `prompts` and the completion of row i of `completions`. A sequence's completion are
/// its tokens from the first to the last that counts as a target; its prompt is what stands before. What exceeds T
/// tokens is cut off. Where one of both sequences has no targets, the row has none. Throws Error{"invalid_argument"}
/// for leaves whose tokens and targets do not fit.
MismatchedLeaf mismatched_leaf(const LeafInput& prompts, const LeafInput& completions, std::int64_t batch);

/// Whether both rows of a leaf of two have the same completion.
bool have_same_completion(const LeafInput& pair);

}  // namespace zerofleet
