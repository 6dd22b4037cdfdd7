#pragma once

#include <cstddef>
#include <cstdint>

#include "core/host_device.h"
#include "kernels/flat/block_hash.h"

// XXH3-128 of exactly kHashedBlockBytes bytes, in pieces that run side by side. Source: the specification of XXH3
// (Collet, doc/xxhash_spec.md of xxHash 0.8), "large inputs", with the secret that belongs to the seed.
//
// The input is 16 inner blocks of 1024 bytes, each 16 stripes of 64 bytes, each 8 words of 64 bits. Eight accumulators,
// one per word of a stripe, take up each stripe by additions mod 2^64, and are scrambled between inner blocks. The
// additions of one inner block may be done in any order, so a warp does four stripes at a time. Thread t works for
// accumulator t mod 8 on stripes t div 8, + 4, + 8, + 12. The four parts are then added up.
namespace zerofleet::cuda::xxh3 {

inline constexpr int kAccumulators = 8;
inline constexpr int kStripesAtOnce = 4;
inline constexpr int kSecretWords = 24;
inline constexpr int kInnerBlocks = 16, kStripesPerInnerBlock = 16, kWordsPerInnerBlock = 128;
static_assert(kInnerBlocks * kWordsPerInnerBlock * 8 == kHashedBlockBytes);

struct Secret {
  std::uint64_t words[kSecretWords];
};

/// XXH3's secret for seed 0. Kernels get it as an argument: an array that threads index must lie in memory of the
/// device.
inline constexpr Secret kStandardSecret{
    {0xbe4ba423396cfeb8, 0x1cad21f72c81017c, 0xdb979083e96dd4de, 0x1f67b3b7a4a44072, 0x78e5c0cc4ee679cb,
     0x2172ffcc7dd05a82, 0x8e2443f7744608b8, 0x4c263a81e69035e0, 0xcb00c391bb52283c, 0xa32e531b8b65d088,
     0x4ef90da297486471, 0xd8acdea946ef1938, 0x3f349ce33f76faa8, 0x1d4f0bc7c7bbdcf9, 0x3159b4cd4be0518a,
     0x647378d9c97e9fc8, 0xc3ebd33483acc5ea, 0xeb6313faffa081c5, 0x49daf0b751dd0d17, 0x9e68d429265516d3,
     0xfca1477d58be162b, 0xce31d07ad1b8f88f, 0x280416958f3acb45, 0x7e404bbbcafbd7af}};

/// Word `word` of the secret of a seed: the standard one, plus the seed at even indices, minus it at odd ones.
ZF_HOST_DEVICE inline std::uint64_t secret_word(const Secret& standard, std::uint64_t seed, int word) {
  return word % 2 == 0 ? standard.words[word] + seed : standard.words[word] - seed;
}

/// The 64 bits of the secret that begin at byte `offset`, little-endian.
ZF_HOST_DEVICE inline std::uint64_t secret_at(const std::uint64_t* secret, int offset) {
  const int word = offset / 8, shift = offset % 8 * 8;
  return shift == 0 ? secret[word] : secret[word] >> shift | secret[word + 1] << (64 - shift);
}

ZF_HOST_DEVICE inline std::uint64_t first_accumulator(int index) {
  switch (index) {
    case 0:
      return 0xC2B2AE3DU;
    case 1:
      return 0x9E3779B185EBCA87;
    case 2:
      return 0xC2B2AE3D27D4EB4F;
    case 3:
      return 0x165667B19E3779F9;
    case 4:
      return 0x85EBCA77C2B2AE63;
    case 5:
      return 0x85EBCA77U;
    case 6:
      return 0x27D4EB2F165667C5;
    default:
      return 0x9E3779B1U;
  }
}

/// Contribution of a stripe to accumulator `index`: its word keyed by the secret, halves multiplied, and the
/// neighbour's word.
ZF_HOST_DEVICE inline std::uint64_t stripe_part(const std::uint64_t* stripe, int index, std::uint64_t key) {
  const std::uint64_t keyed = stripe[index] ^ key;
  return (keyed & 0xffffffffU) * (keyed >> 32) + stripe[index ^ 1];
}

/// Contribution of thread `thread` of a warp to accumulator thread mod 8 for inner block `inner`. The last stripe of
/// the input is keyed from byte 121 of the secret on instead of taking its turn.
ZF_HOST_DEVICE inline std::uint64_t thread_part(const std::uint64_t* words, const std::uint64_t* secret, int inner,
                                                int thread) {
  const int index = thread % kAccumulators;
  std::uint64_t part = 0;
  ZF_DEVICE_UNROLL(4)
  for (int turn = 0; turn < kStripesPerInnerBlock / kStripesAtOnce; ++turn) {
    const int stripe = thread / kAccumulators + turn * kStripesAtOnce;
    const bool is_last = inner == kInnerBlocks - 1 && stripe == kStripesPerInnerBlock - 1;
    const std::uint64_t key = is_last ? secret_at(secret, 121 + 8 * index) : secret[stripe + index];
    part += stripe_part(words + inner * kWordsPerInnerBlock + stripe * kAccumulators, index, key);
  }
  return part;
}

/// Between two inner blocks.
ZF_HOST_DEVICE inline std::uint64_t scrambled(std::uint64_t accumulator, const std::uint64_t* secret, int index) {
  const std::uint64_t key = secret[kSecretWords - kAccumulators + index];
  return (accumulator ^ accumulator >> 47 ^ key) * 0x9E3779B1U;
}

/// The two halves of a 128-bit product, exclusive-ored.
ZF_HOST_DEVICE inline std::uint64_t folded_product(std::uint64_t a, std::uint64_t b) {
#if defined(__CUDA_ARCH__)
  return (a * b) ^ __umul64hi(a, b);
#else
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
#endif
}

ZF_HOST_DEVICE inline std::uint64_t merged(const std::uint64_t* accumulators, const std::uint64_t* secret, int offset,
                                           std::uint64_t start) {
  std::uint64_t hash = start;
  ZF_DEVICE_UNROLL(4)
  for (int i = 0; i < kAccumulators; i += 2) {
    hash += folded_product(accumulators[i] ^ secret_at(secret, offset + 8 * i),
                           accumulators[i + 1] ^ secret_at(secret, offset + 8 * i + 8));
  }
  hash ^= hash >> 37;
  hash *= 0x165667919E3779F9;
  return hash ^ hash >> 32;
}

/// The hash from all eight accumulators after the last inner block.
ZF_HOST_DEVICE inline Hash128 finish(const std::uint64_t* accumulators, const std::uint64_t* secret) {
  constexpr std::uint64_t kLength = kHashedBlockBytes;
  return {merged(accumulators, secret, 11, kLength * 0x9E3779B185EBCA87),
          merged(accumulators, secret, 192 - 64 - 11, ~(kLength * 0xC2B2AE3D27D4EB4F))};
}

}  // namespace zerofleet::cuda::xxh3
