#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/system/cpu_isa.h"

namespace zerofleet {

/// How a token is drawn from a model's logits (elsewhere: sampling parameters).
struct DrawOptions {
  double temperature = 1.0;     // 0 picks the most likely token
  std::int64_t top_k = 0;       // draw among the k most likely tokens; 0 keeps all
  double top_p = 1.0;           // of those, keep the fewest whose probabilities add up to this share; 1 keeps all
  std::int64_t num_tokens = 0;  // draw and report only tokens below this, which the tokenizer knows; 0: no limit
  std::uint64_t seed = 1;
};

/// Throws Error{"invalid_argument"} that names the option.
void validate(const DrawOptions& options);

/// Returns the logits of the tokens that `num_tokens` allows.
std::span<const float> known_tokens(std::span<const float> logits, const DrawOptions& options);

/// Draws one token. logits: (V), V ≥ 1. `place`: number of tokens drawn before it in its sequence.
///
/// The token is a function of the seed, the place, the other options, the logits and `isa`. Of equal logits the lower
/// token comes first.
std::int32_t draw_token(CpuIsa isa, std::span<const float> logits, const DrawOptions& options, std::uint32_t place);

/// Returns the `count` most likely tokens, or all if there are fewer, most likely first. Of equal logits the lower
/// token comes first.
std::vector<std::int32_t> most_likely(std::span<const float> logits, std::size_t count);

}  // namespace zerofleet
