#include "zero/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdio>
#include <vector>

#include "core/error.h"
#include "zero/shard_layout.h"

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
  std::vector<Digest128> sums(static_cast<std::size_t>(context.pool->num_threads()));
  const auto num_blocks = static_cast<std::int64_t>(values.size()) / kBlockNumel;
  context.pool->parallel_for(num_blocks, [&](std::int64_t task, int worker) {
    const auto seed = (std::uint64_t{state} << 56) | static_cast<std::uint64_t>(first_block + task);
    const auto hash = XXH3_128bits_withSeed(values.data() + task * kBlockNumel, kBlockNumel * sizeof(float), seed);
    sums[static_cast<std::size_t>(worker)] += {hash.low64, hash.high64};
  });
  Digest128 total;
  for (const Digest128& sum : sums) total += sum;
  return total;
}

}  // namespace zerofleet
