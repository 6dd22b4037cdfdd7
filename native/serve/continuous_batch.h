#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/device/context.h"
#include "kernels/attention/rope_frequencies.h"
#include "model/transformer/decoder.h"
#include "serve/sequence_scheduler.h"

namespace zerofleet {

/// Why a sequence ends with a token.
enum class Finish : std::uint8_t { kNone, kEndToken, kLength };

struct LikelyToken {
  std::int32_t token = 0;
  float log_prob = 0;
};

struct DrawnToken {
  std::uint64_t id = 0;  // of the request
  LikelyToken drawn;
  std::vector<LikelyToken> top;  // the most likely one first
  Finish finish = Finish::kNone;
  std::int64_t cached_tokens = 0;  // prompt tokens whose keys and values an earlier sequence left in the KV cache
};

/// Runs continuous batching: each step() schedules rows of the running sequences and computes them in one forward pass.
/// Sequences join and leave at any step. Sequences with a common prefix share its pages of the KV cache. A sequence
/// without room for its next page is preempted: it releases its pages, waits, and is computed again later.
///
/// Every drawn token and log-probability is a function of the weights, the prompt, the options and the seed alone (see
/// Decoder). It does not depend on other sequences, on earlier ones, or on the number of threads.
///
/// Beyond some length a sequence may need other rotary frequencies (RopeScaling::is_long). When it grows past that
/// length, all of it is prefilled again, so its tokens equal those of a long prompt.
class ContinuousBatch {
 public:
  /// Limits of a decoder for at most `max_sequences` running sequences, 1 to 128, and a KV cache of `cache_tokens`.
  /// Throws Error{"invalid_argument"} outside of these.
  static Decoder::Limits decoder_limits(const ModelConfig& config, std::int64_t max_sequences,
                                        std::int64_t cache_tokens, std::int64_t max_length);

  /// `context`: that of the decoder, which must outlive the object.
  ContinuousBatch(const Context& context, const RopeScaling& rope_scaling, Decoder& decoder);

  /// Throws Error{"invalid_argument"} for an empty prompt or invalid options, Error{"token_out_of_vocab"}, and
  /// Error{"prompt_too_long"} for a prompt of `max_length` or more tokens.
  static void check(const SequenceRequest& request, std::int64_t vocab_size, std::int64_t max_length);

  SequenceScheduler& sequences() { return scheduler_; }

  /// Returns an adapter by its number, which is not 0.
  using AdapterOf = std::function<const ServedAdapter*(std::int32_t number)>;
  /// Computes the next rows. Returns the drawn tokens, at most one per request; none while prompts are prefilled.
  std::vector<DrawnToken> step(const AdapterOf& adapter_of);

 private:
  DrawnToken draw(const Sequence& sequence, const NextToken& next) const;

  Context context_;
  Decoder& decoder_;
  SequenceScheduler scheduler_;
};

}  // namespace zerofleet
