#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/system/cpu_isa.h"

namespace zerofleet {

struct DrawOptions {
  double temperature = 1.0;     // 0 picks the most likely token
  std::int64_t top_k = 0;       // draw among the k most likely tokens; 0 keeps all
  double top_p = 1.0;           // and of those among the fewest whose probabilities reach this share; 1 keeps all
  std::int64_t num_tokens = 0;  // only tokens below it are drawn and told, those that the tokenizer knows; 0: the vocabulary
  std::uint64_t seed = 1;
};

/// Throws Error{"invalid_argument"} that names the option.
void validate(const DrawOptions& options);

/// The logits of the tokens that may be drawn.
std::span<const float> known_tokens(std::span<const float> logits, const DrawOptions& options);

/// Draws one token, a function of (seed, place), the options, the logits and the path alone. Equal logits are ordered by token.
/// logits: (V), V ≥ 1.
std::int32_t draw_token(CpuIsa isa, std::span<const float> logits, const DrawOptions& options, std::uint32_t place);

/// The `count` most likely tokens, or all where there are less, the most likely one first; equal ones in the order of
/// their numbers.
std::vector<std::int32_t> most_likely(std::span<const float> logits, std::size_t count);

}  // namespace zerofleet
