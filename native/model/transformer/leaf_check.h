#pragma once

#include "model/common/block.h"
#include "model/common/leaf_input.h"

namespace zerofleet {

/// Throws Error{"invalid_argument"} where a leaf does not have the shape or has a target in its padding, and
/// Error{"token_out_of_vocab"} for a target that is neither in the vocabulary nor -100.
void check_leaf(const LeafInput& leaf, const PassShape& shape, std::int64_t vocab_size);

}  // namespace zerofleet
