#pragma once

#include <cstdint>
#include <span>

namespace zerofleet {

struct SampleOptions {
  std::int64_t max_tokens = 64;
  double temperature = 1.0;     // 0 picks the most likely token
  std::int64_t top_k = 0;       // draw among the k most likely tokens; 0 keeps all
  double top_p = 1.0;           // and of those among the fewest whose probabilities reach this share; 1 keeps all
  std::int64_t num_tokens = 0;  // only tokens below it are drawn, those that the tokenizer knows; 0: the vocabulary
  std::int64_t end_token = -1;  // no token is drawn after it, and it is left out; -1: there is none
  std::uint64_t seed = 1;
};

/// Throws Error{"invalid_argument"} that names the option.
void validate(const SampleOptions& options);

/// Draws one token, a function of (seed, place), the options and the logits alone. Equal logits are ordered by token.
/// logits: (V), V ≥ 1.
std::int32_t draw_token(std::span<const float> logits, const SampleOptions& options, std::uint32_t place);

}  // namespace zerofleet
