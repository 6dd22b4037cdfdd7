#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/device/context.h"

namespace zerofleet {

/// A number mod 2^128. Sums do not depend on the order, so ranks can add up their shares.
struct Digest128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  Digest128& operator+=(const Digest128& other);
  /// 32 lower-case hexadecimal digits, most significant first.
  std::string to_hex() const;
  friend bool operator==(const Digest128&, const Digest128&) = default;
};

/// Returns the sum over the blocks in `values` (whole blocks of kBlockNumel floats) of XXH3-128 of the block's bytes.
/// The seed consists of `state` and the block's global id, which is `first_block` for the first one. Little-endian
/// machines only, as all of the core.
Digest128 digest_blocks(const Context& context, std::uint8_t state, std::int64_t first_block,
                        std::span<const float> values);

}  // namespace zerofleet
