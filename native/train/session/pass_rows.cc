#include "train/session/pass_rows.h"

#include <numeric>
#include <string>

#include "core/error.h"
#include "data/sequence_reader.h"

namespace zerofleet {
namespace {

void check_sizes(const PassRows& rows, const PassLimits& limits) {
  require(rows.num_rows() >= 1 && rows.num_rows() <= limits.max_rows, "invalid_argument",
          "a pass of " + std::to_string(rows.num_rows()) + " rows; it has 1 to global_batch_size, " +
              std::to_string(limits.max_rows));
  for (const std::int32_t length : rows.lengths) {
    require(length >= 1 && length <= limits.sequence_length, "invalid_argument",
            "a row of " + std::to_string(length) + " tokens; it has 1 to sequence_length, " +
                std::to_string(limits.sequence_length));
  }
  const std::int64_t sum = std::accumulate(rows.lengths.begin(), rows.lengths.end(), std::int64_t{0});
  require(std::ssize(rows.tokens) == sum && std::ssize(rows.targets) == sum, "invalid_argument",
          "rows have " + std::to_string(sum) + " tokens, and as many targets");
}

void check_tokens(const PassRows& rows, std::int64_t vocab_size) {
  const auto is_known = [&](std::int32_t token) { return token >= 0 && token < vocab_size; };
  for (std::size_t at = 0; at < rows.tokens.size(); ++at) {
    const std::int32_t token = rows.tokens[at], target = rows.targets[at];
    require(is_known(token) && (is_known(target) || target == kIgnoredTarget), "token_out_of_vocab",
            "token " + std::to_string(token) + " with target " + std::to_string(target) +
                " is outside the vocabulary of " + std::to_string(vocab_size));
  }
}

void check_values(const char* name, const std::vector<float>& values, const PassRows& rows, bool is_read,
                  bool is_needed) {
  require(values.empty() ? !is_needed : is_read && values.size() == rows.tokens.size(), "invalid_argument",
          std::string(name) + (is_read ? " has a number for each token" : " is not read by this loss; leave it out"));
}

void check_pairs(const PassRows& rows, const PassLimits& limits) {
  require(limits.leaf_rows % 2 == 0, "invalid_argument",
          "dpo needs an even micro_batch_size, because the rows of a pair are computed together (it is " +
              std::to_string(limits.leaf_rows) + ")");
  require(rows.num_rows() % 2 == 0, "invalid_argument",
          "dpo takes pairs of rows, not " + std::to_string(rows.num_rows()) + " rows");
  std::vector<bool> has_target;
  auto target = rows.targets.begin();
  for (const std::int32_t length : rows.lengths) {
    has_target.push_back(std::any_of(target, target + length, [](std::int32_t each) { return each >= 0; }));
    target += length;
  }
  for (std::size_t chosen = 0; chosen < has_target.size(); chosen += 2) {
    require(has_target[chosen] == has_target[chosen + 1], "invalid_argument",
            "of pair " + std::to_string(chosen / 2) + " one row has no target");
  }
}

}  // namespace

void check(const PassRows& rows, const PassLoss& loss, const PassLimits& limits) {
  validate(loss);
  require(!loss.has_penalty() || limits.has_base, "invalid_argument",
          "beta compares with the base, the model without its adapter: it needs an adapter without modules_to_save");
  check_sizes(rows, limits);
  check_tokens(rows, limits.vocab_size);
  check_values("weights", rows.weights, rows, loss.reads_weights(), false);
  check_values("log_probs", rows.log_probs, rows, loss.reads_log_probs(), loss.reads_log_probs());
  check_values("advantages", rows.advantages, rows, loss.reads_advantages(), loss.reads_advantages());
  if (loss.has_pairs()) check_pairs(rows, limits);
}

PassLeaves::PassLeaves(const PassRows& rows, const PassLimits& limits)
    : rows_(rows), leaf_rows_(limits.leaf_rows), length_(limits.sequence_length), begins_{0} {
  for (const std::int32_t length : rows.lengths) begins_.push_back(begins_.back() + length);
}

void PassLeaves::load(std::int64_t leaf) {
  const auto count = static_cast<std::size_t>(leaf_rows_ * length_);
  lengths_.assign(static_cast<std::size_t>(leaf_rows_), 0);
  const auto clear = [&](auto& values, const auto& source, auto value) {
    values.assign(source.empty() ? 0 : count, value);
  };
  clear(tokens_, rows_.tokens, 0);
  clear(targets_, rows_.targets, kIgnoredTarget);
  clear(weights_, rows_.weights, 0);
  clear(log_probs_, rows_.log_probs, 0);
  clear(advantages_, rows_.advantages, 0);
  each_token(leaf, [&](std::int64_t row, std::int64_t i, std::size_t index) {
    const auto at = static_cast<std::size_t>(row * length_ + i);
    ++lengths_[static_cast<std::size_t>(row)];
    tokens_[at] = rows_.tokens[index];
    targets_[at] = rows_.targets[index];
    if (!weights_.empty()) weights_[at] = rows_.weights[index];
    if (!log_probs_.empty()) log_probs_[at] = rows_.log_probs[index];
    if (!advantages_.empty()) advantages_[at] = rows_.advantages[index];
  });
}

}  // namespace zerofleet
