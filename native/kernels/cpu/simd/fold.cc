#include "kernels/cpu/simd/fold.h"

#include "kernels/cpu/simd/bf16_bits.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

// Partial sums of this many elements stay in the first-level cache while the pieces are added one after another.
constexpr int64_t kChunk = 2048;

inline __attribute__((always_inline)) float read(const uint16_t* element) { return from_bf16_bits(*element); }
inline __attribute__((always_inline)) float read(const float* element) { return *element; }

template <class Element>
inline __attribute__((always_inline)) void fold_pieces(const Element* pieces, int64_t stride, int64_t num_pieces,
                                                       bool restart, float* sum, int64_t numel) {
  for (int64_t begin = 0; begin < numel; begin += kChunk) {
    const int64_t count = numel - begin < kChunk ? numel - begin : kChunk;
    float* __restrict target = sum + begin;
    for (int64_t piece = 0; piece < num_pieces; ++piece) {
      const Element* __restrict source = pieces + piece * stride + begin;
      if (restart && piece == 0) {
        // Adding to zero, not copying: it turns -0 into +0, as adding the piece to a cleared sum would.
        for (int64_t i = 0; i < count; ++i) target[i] = 0.0F + read(source + i);
      } else {
        for (int64_t i = 0; i < count; ++i) target[i] += read(source + i);
      }
    }
  }
}

}  // namespace

void fold_bf16(const uint16_t* pieces, int64_t stride, int64_t num_pieces, bool restart, float* sum, int64_t numel) {
  fold_pieces(pieces, stride, num_pieces, restart, sum, numel);
}

void fold_f32(const float* pieces, int64_t stride, int64_t num_pieces, bool restart, float* sum, int64_t numel) {
  fold_pieces(pieces, stride, num_pieces, restart, sum, numel);
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
