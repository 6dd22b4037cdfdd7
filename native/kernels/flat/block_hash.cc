#include "kernels/flat/block_hash.h"

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {

void hash_blocks(const Context& context, std::span<const std::byte> blocks, std::uint64_t first_seed,
                 std::span<Hash128> hashes) {
  require(blocks.size() == hashes.size() * kHashedBlockBytes, "invalid_argument",
          "there must be one hash per whole block");
  backend_of(context).hash_blocks(context, blocks, first_seed, hashes);
}

}  // namespace zerofleet
