#include "kernels/flat/block_hash.h"

#include "core/error.h"
#include "kernels/flat/cpu/launch.h"
#include "kernels/flat/cuda/launch.h"

namespace zerofleet {

void hash_blocks(const Context& context, std::span<const std::byte> blocks, std::uint64_t first_seed,
                 std::span<Hash128> hashes) {
  require(blocks.size() == hashes.size() * kHashedBlockBytes, "invalid_argument", "there must be one hash per whole block");
  switch (context.device.kind) {
    case DeviceKind::kCpu: return cpu::hash_blocks(context, blocks, first_seed, hashes);
    case DeviceKind::kCuda: return cuda::hash_blocks(context, blocks, first_seed, hashes);
  }
}

}  // namespace zerofleet
