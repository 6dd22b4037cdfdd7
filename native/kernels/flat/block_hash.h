#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/device/context.h"

namespace zerofleet {

/// Bytes of a block as it is hashed: 4096 elements of fp32.
inline constexpr std::size_t kHashedBlockBytes = 16384;

struct Hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

/// XXH3-128 (Collet, xxHash 0.8) of each block of `blocks`, with seed first_seed + its index. `hashes` lies in host
/// memory on every device, and is there when the call returns. Equal bits on all devices.
/// Throws Error{"invalid_argument"} unless there is one hash per whole block.
void hash_blocks(const Context& context, std::span<const std::byte> blocks, std::uint64_t first_seed,
                 std::span<Hash128> hashes);

}  // namespace zerofleet
