#define XXH_INLINE_ALL
#include "kernels/flat/block_hash.h"

#include <xxhash/xxhash.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/device/context.h"
#include "core/dtype.h"

namespace zerofleet::cpu {

void hash_blocks(const Context& context, std::span<const std::byte> blocks, std::uint64_t first_seed,
                 std::span<Hash128> hashes) {
  context.pool->parallel_for(static_cast<std::int64_t>(hashes.size()), [&](std::int64_t task, int) {
    const auto block = static_cast<std::size_t>(task);
    const auto hash =
        XXH3_128bits_withSeed(blocks.data() + block * kHashedBlockBytes, kHashedBlockBytes, first_seed + block);
    hashes[block] = {hash.low64, hash.high64};
  });
}

}  // namespace zerofleet::cpu
