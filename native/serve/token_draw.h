#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/system/cpu_isa.h"

namespace zerofleet {

/// Number that is added to the logit of a token.
struct LogitBias {
  std::int64_t token = 0;
  double bias = 0;

  template <class Fields>
  void fields(Fields& field) {
    field("token", token);
    field("bias", bias);
  }
};

/// How a token is drawn from a model's logits (elsewhere: sampling parameters).
struct DrawOptions {
  double temperature = 1.0;     // 0 picks the most likely token
  std::int64_t top_k = 0;       // draw among the k most likely tokens; 0 keeps all
  double top_p = 1.0;           // of those, keep the fewest whose probabilities add up to this share; 1 keeps all
  std::int64_t num_tokens = 0;  // draw and report only tokens below this, which the tokenizer knows; 0: no limit
  std::uint64_t seed = 1;
  double presence_penalty = 0;        // subtracted from the logit of a token that was drawn before
  double frequency_penalty = 0;       // subtracted as often as the token was drawn before
  std::vector<LogitBias> logit_bias;  // of different tokens

  template <class Fields>
  void fields(Fields& field) {
    field("temperature", temperature);
    field("top_k", top_k);
    field("top_p", top_p);
    field("num_tokens", num_tokens);
    field("seed", seed);
    field("presence_penalty", presence_penalty);
    field("frequency_penalty", frequency_penalty);
    field("logit_bias", logit_bias);
  }
};

/// Throws Error{"invalid_argument"} that names the option.
void validate(const DrawOptions& options);

/// Returns the logits of the tokens that `num_tokens` allows.
std::span<const float> known_tokens(std::span<const float> logits, const DrawOptions& options);

/// Tokens that may be drawn: bit t % 32 of word t / 32 for token t. An empty mask allows all.
using TokenMask = std::vector<std::uint32_t>;

/// Whether adjusted_logits() differ from the model's without a mask.
bool adjusts_logits(const DrawOptions& options);

/// Returns the logits that a token is drawn from: the model's with penalties and biases, and −∞ for tokens outside the
/// mask. logits: (V). `drawn`: the tokens of the sequence that were drawn before.
std::vector<float> adjusted_logits(std::span<const float> logits, const DrawOptions& options,
                                   std::span<const std::int32_t> drawn, const TokenMask& mask);

/// Draws one token. logits: (V), V ≥ 1. `position`: number of tokens drawn before it in its sequence.
///
/// The token is a function of the seed, the position, the other options, the logits and `isa`. Of equal logits the
/// lower token comes first.
std::int32_t draw_token(CpuIsa isa, std::span<const float> logits, const DrawOptions& options, std::uint32_t position);

/// Returns the `count` most likely tokens, or all if there are fewer, most likely first. Of equal logits the lower
/// token comes first.
std::vector<std::int32_t> most_likely(std::span<const float> logits, std::size_t count);

}  // namespace zerofleet
