#include "model/transformer/leaf_check.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "core/error.h"

namespace zerofleet {
namespace {

void check_documents(std::span<const std::int32_t> starts, const PassShape& shape) {
  if (starts.empty()) return;
  require(starts.size() == static_cast<std::size_t>(shape.rows()), "invalid_argument",
          "document_starts has one position per token, or none at all");
  for (std::size_t row = 0; row < starts.size(); ++row) {
    const auto position = static_cast<std::int32_t>(static_cast<std::int64_t>(row) % shape.length);
    const std::int32_t before = position == 0 ? 0 : starts[row - 1];
    require(starts[row] >= before && starts[row] <= position, "invalid_argument",
            "document_starts: the document of token " + std::to_string(position) + " cannot begin at " +
                std::to_string(starts[row]));
  }
}

/// What follows the end of a sequence is padding, so it has no target.
void check_lengths(const LeafInput& leaf, const PassShape& shape) {
  if (leaf.lengths.empty()) return;
  require(std::ssize(leaf.lengths) == shape.batch, "invalid_argument",
          "lengths has one number per sequence, or none at all");
  for (std::int64_t sequence = 0; sequence < shape.batch; ++sequence) {
    const std::int64_t length = leaf.lengths[static_cast<std::size_t>(sequence)];
    require(length >= 0 && length <= shape.length, "invalid_argument",
            "lengths: a sequence of a leaf has 0 to " + std::to_string(shape.length) + " tokens, not " +
                std::to_string(length));
    const auto padding = leaf.targets.subspan(static_cast<std::size_t>(sequence * shape.length + length),
                                              static_cast<std::size_t>(shape.length - length));
    require(std::ranges::all_of(padding, [](std::int32_t target) { return target < 0; }), "invalid_argument",
            "lengths: a target follows the " + std::to_string(length) + " tokens of a sequence");
  }
}

}  // namespace

const ModelConfig& checked_model(const ModelConfig& config, const PassShape& shape) {
  validate_trained(config);
  require(shape.batch >= 1 && shape.length >= 1 && shape.length <= config.max_position_embeddings, "invalid_argument",
          "a micro-batch of " + std::to_string(shape.batch) + " sequences of " + std::to_string(shape.length) +
              " tokens; the model takes 1 to " + std::to_string(config.max_position_embeddings) + " tokens");
  return config;
}

void check_leaf(const LeafInput& leaf, const PassShape& shape, std::int64_t vocab_size) {
  const auto rows = static_cast<std::size_t>(shape.rows());
  require(leaf.tokens.size() == rows && leaf.targets.size() == rows, "invalid_argument",
          "a pass takes " + std::to_string(rows) + " tokens and targets");
  check_lengths(leaf, shape);
  check_documents(leaf.document_starts, shape);
  for (const std::int32_t target : leaf.targets) {
    if (target == -100 || (target >= 0 && target < vocab_size)) continue;
    throw Error("token_out_of_vocab", "target " + std::to_string(target) + " is neither in the vocabulary nor -100");
  }
}

}  // namespace zerofleet
