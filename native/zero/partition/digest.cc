#include "zero/partition/digest.h"

#include <cstdio>
#include <vector>

#include "core/error.h"
#include "kernels/flat/block_hash.h"
#include "zero/partition/shard_layout.h"

namespace zerofleet {

Digest128& Digest128::operator+=(const Digest128& other) {
  low += other.low;
  high += other.high + (low < other.low ? 1 : 0);
  return *this;
}

std::string Digest128::to_hex() const {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(high),
                static_cast<unsigned long long>(low));
  return text;
}

Digest128 digest_blocks(const Context& context, std::uint8_t state, std::int64_t first_block,
                        std::span<const float> values) {
  require(values.size() % kBlockNumel == 0, "invalid_argument", "a digest is over whole blocks");
  static_assert(kBlockNumel * sizeof(float) == kHashedBlockBytes);
  std::vector<Hash128> hashes(values.size() / kBlockNumel);
  const auto first_seed = (std::uint64_t{state} << 56) | static_cast<std::uint64_t>(first_block);
  hash_blocks(context, std::as_bytes(values), first_seed, hashes);
  Digest128 total;
  for (const Hash128& hash : hashes) total += {hash.low, hash.high};
  return total;
}

}  // namespace zerofleet
