#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/cuda/vec4.h"

// Work of a thread in the flat passes: the four elements from `first` on. See kernels/flat/cast.h and
// kernels/flat/fold.h.
namespace zerofleet::cuda {

struct CastArrays {
  const std::byte* source;
  DType source_dtype;
  std::byte* target;
  DType target_dtype;
  std::int64_t numel;
  float factor;
  bool aligned;  // both arrays
};

ZF_HOST_DEVICE inline void cast4(const CastArrays& a, std::int64_t first) {
  const Place4 at = place4(first, a.numel, a.aligned);
  Vec4 x = load4(a.source, a.source_dtype, at);
  // A factor of 1 would change nothing but a NaN, whose bits devices and CPUs choose differently.
  if (a.factor != 1.0F) {
    ZF_DEVICE_UNROLL(4)
    for (int k = 0; k < 4; ++k) x.v[k] = x.v[k] * a.factor;
  }
  store4(a.target, a.target_dtype, at, x);
}

struct FoldArrays {
  const std::byte* pieces;  // (num_pieces, numel)
  DType piece_dtype;
  std::int64_t num_pieces;
  std::byte* sum;  // (numel)
  DType sum_dtype;
  std::int64_t numel;
  bool restart;
  bool aligned;  // the sum and every piece
};

ZF_HOST_DEVICE inline void fold4(const FoldArrays& a, std::int64_t first) {
  const Place4 at = place4(first, a.numel, a.aligned);
  Vec4 sum = a.restart ? Vec4{} : load4(a.sum, a.sum_dtype, at);
  const std::int64_t piece_bytes = a.numel * static_cast<std::int64_t>(size_of(a.piece_dtype));
  for (std::int64_t piece = 0; piece < a.num_pieces; ++piece) {
    const Vec4 x = load4(a.pieces + piece * piece_bytes, a.piece_dtype, at);
    ZF_DEVICE_UNROLL(4)
    for (int k = 0; k < 4; ++k) sum.v[k] = rounded(sum.v[k] + x.v[k], a.sum_dtype);
  }
  store4(a.sum, a.sum_dtype, at, sum);
}

}  // namespace zerofleet::cuda
