#pragma once

#include "model/common/block.h"
#include "model/common/leaf_input.h"
#include "model/config/model_config.h"

namespace zerofleet {

/// Returns the configuration. Throws Error{"invalid_model_config"}, or Error{"invalid_argument"} for leaves of a shape
/// that it does not take.
const ModelConfig& checked_model(const ModelConfig& config, const PassShape& shape);

/// Throws Error{"invalid_argument"} where a leaf does not have the shape or has a target in its padding, and
/// Error{"token_out_of_vocab"} for a target that is neither in the vocabulary nor -100.
void check_leaf(const LeafInput& leaf, const PassShape& shape, std::int64_t vocab_size);

}  // namespace zerofleet
