#include "bench/gpu/token_source.h"

#include <string>
#include <utility>
#include <vector>

#include "core/philox.h"

namespace zerofleet::bench {

std::string learnable_tokens(std::int64_t vocab_size, std::int64_t sequence_length, std::int64_t num_sequences) {
  std::vector<std::uint32_t> tokens;
  for (std::int64_t i = 0; i < num_sequences * sequence_length + 1; ++i) {
    const std::uint32_t bits = philox(11, {static_cast<std::uint32_t>(i / 2), 0, 0, 0})[0];
    tokens.push_back(bits % static_cast<std::uint32_t>(vocab_size));
  }
  TokenTables tables = cut_into_sequences(std::move(tokens), sequence_length);
  tables.token_bytes = vocab_size > 65'536 ? 4 : 2;
  return bytes_of(tables);
}

}  // namespace zerofleet::bench
