#pragma once

#include <cstdint>

#include "bench/written_tokens.h"

namespace zerofleet::bench {

/// The content of a token file of `num_sequences` sequences. Every other token repeats its predecessor, the others are
/// drawn uniformly: so there is something to learn.
std::string learnable_tokens(std::int64_t vocab_size, std::int64_t sequence_length, std::int64_t num_sequences);

}  // namespace zerofleet::bench
