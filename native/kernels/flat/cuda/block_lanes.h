#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/common/cuda/vec4.h"

// Sums over a block, by a warp of 32 lanes. Lane l has the running sum of elements l, l + 32, l + 64 and so on. The
// running sums are folded by halves: lane l plus lane l + 16, then l + 8, and so on. That is the order of
// kernels/flat/block_stats.h, and of the CPU.
namespace zerofleet::cuda {

inline constexpr int kLanes = 32;

ZF_HOST_DEVICE inline std::uint32_t magnitude_bits(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7fffffffU;
}

struct BlockLane {
  double sum_squares = 0;
  std::uint32_t max_magnitude = 0;  // bits of a magnitude: they order as integers, and a NaN above infinity

  ZF_HOST_DEVICE void add(float value) {
    const double wide = static_cast<double>(value);
    sum_squares = sum_squares + wide * wide;
    const std::uint32_t magnitude = magnitude_bits(value);
    max_magnitude = magnitude > max_magnitude ? magnitude : max_magnitude;
  }
};

/// The part of one lane in a block of `numel` elements.
template <class T>
ZF_HOST_DEVICE inline BlockLane block_lane(const T* block, std::int64_t numel, int lane) {
  BlockLane part;
  ZF_DEVICE_UNROLL(8)
  for (std::int64_t i = lane; i < numel; i += kLanes) part.add(to_float(block[i]));
  return part;
}

ZF_HOST_DEVICE inline BlockLane block_lane(const std::byte* block, DType dtype, std::int64_t numel, int lane) {
  switch (dtype) {
    case DType::kBF16:
      return block_lane(reinterpret_cast<const bf16*>(block), numel, lane);
    case DType::kF16:
      return block_lane(reinterpret_cast<const f16*>(block), numel, lane);
    case DType::kF32:
      break;
  }
  return block_lane(reinterpret_cast<const float*>(block), numel, lane);
}

}  // namespace zerofleet::cuda
