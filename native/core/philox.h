#pragma once

#include <array>
#include <cstdint>

#include "core/host_device.h"

namespace zerofleet {

/// Philox4x32-10, a counter-based generator (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
/// The value at a counter depends on key and counter alone, so any rank or thread can draw any element's number.
ZF_HOST_DEVICE inline std::array<std::uint32_t, 4> philox(std::uint64_t key, std::array<std::uint32_t, 4> counter) {
  constexpr std::uint64_t kMul0 = 0xD2511F53U, kMul1 = 0xCD9E8D57U;
  auto key0 = static_cast<std::uint32_t>(key), key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = kMul0 * counter[0], p1 = kMul1 * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(p0)};
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return counter;
}

/// Uniform in (0, 1), never 0 or 1, with 32 bits.
ZF_HOST_DEVICE inline double uniform_open(std::uint32_t bits) { return (static_cast<double>(bits) + 0.5) * 0x1p-32; }

}  // namespace zerofleet
