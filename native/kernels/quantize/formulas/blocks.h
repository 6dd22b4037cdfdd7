#pragma once

#include <stdint.h>

#include "core/host_device.h"
#include "core/quant_format.h"

// The arithmetic of quantized matrices (Dettmers et al., "QLoRA: Efficient Finetuning of Quantized LLMs", 2023): one
// text for every instruction-set path and for CUDA devices. V is a float, or a vector of floats. Every operation is
// rounded correctly and none is fused, so all of them give equal bits.
//
//   1. Each row is cut into blocks of 64 elements; the last block of a row may be shorter. So a row begins with a block
//      whatever its length is, and a tile is unpacked without a look at other rows. Where the length is a multiple of
//      64, these are the blocks of the flat array.
//   2. The scale c of a block is its largest magnitude for nf4, and that over 127 for int8.
//   3. Scales are quantized, too, in groups of 256 blocks in row-major order: c ≈ offset + code · step. The offset is
//      the mean of the group (summed in fp64, block by block). The step is max |c - offset| / 127, and a code is from
//      -127 to 127. A sum offset + code · step below 0 counts as 0.
//   4. An element x becomes the code whose level is nearest to x / c, with the c that step 3 restores. It is restored
//      as level · c.
//
// Ties: to the lower level in nf4, to the even code in int8 and among the codes of scales. A block whose restored c is
// 0 has zeros.
namespace zerofleet {

constexpr int kQuantBlock = 64;   // elements with one scale
constexpr int kQuantGroup = 256;  // blocks whose scales are quantized together

/// How the scales of a group are restored: offset + code · step.
struct QuantGroup {
  float offset;
  float step;
};

/// Arrays of a quantized matrix (rows, cols), of blocks in row-major order. A block has 64 bytes of codes in int8 and
/// 32 in nf4, whose byte j has the codes of elements j (low half) and j + 32. Elements beyond the end of a row have the
/// code of zero.
struct ConstQuantBlocks {
  QuantFormat format;
  int64_t rows, cols;
  const uint8_t* codes;
  const QuantGroup* groups;
  const int8_t* scale_codes;  // a code per block
};

struct QuantBlocks {
  QuantFormat format;
  int64_t rows, cols;
  uint8_t* codes;
  QuantGroup* groups;
  int8_t* scale_codes;

  ZF_FORMULA operator ConstQuantBlocks() const {
    return {format, rows, cols, codes, groups, scale_codes};
  }  // NOLINT: a view
};

ZF_FORMULA constexpr int64_t quant_blocks_of_row(int64_t cols) { return (cols + kQuantBlock - 1) / kQuantBlock; }
ZF_FORMULA constexpr int64_t code_bytes_of_block(QuantFormat format) {
  return format == QuantFormat::kNf4 ? kQuantBlock / 2 : kQuantBlock;
}
/// Elements of a block, which is shorter than others at the end of a row.
ZF_FORMULA int elements_of_block(int64_t cols, int64_t block_of_row) {
  const int64_t left = cols - block_of_row * kQuantBlock;
  return static_cast<int>(left < kQuantBlock ? left : kQuantBlock);
}

/// Level of an nf4 code: quantiles of the normal distribution, 8 above zero and 7 below, and zero (appendix E of the
/// paper).
ZF_FORMULA constexpr float nf4_level(int code) {
  constexpr float levels[16] = {-1.0F,
                                -0.6961928009986877F,
                                -0.5250730514526367F,
                                -0.39491748809814453F,
                                -0.28444138169288635F,
                                -0.18477343022823334F,
                                -0.09105003625154495F,
                                0.0F,
                                0.07958029955625534F,
                                0.16093020141124725F,
                                0.24611230194568634F,
                                0.33791524171829224F,
                                0.44070982933044434F,
                                0.5626170039176941F,
                                0.7229568362236023F,
                                1.0F};
  return levels[code];
}

/// The nf4 code of x / c, as a float: the number of midpoints of neighbouring levels below it.
template <class V>
ZF_FORMULA V nf4_code(V quotient) {
  V code{};
  ZF_UNROLL(15)
  for (int i = 0; i < 15; ++i) {
    const float midpoint = (nf4_level(i) + nf4_level(i + 1)) * 0.5F;
    code = quotient > V{} + midpoint ? V{} + static_cast<float>(i + 1) : code;
  }
  return code;
}

/// The int8 code of x / c, as a float: rounded to the nearest even integer from -127 to 127.
template <class V>
ZF_FORMULA V int8_code(V quotient) {
  const V most = V{} + 127.0F, unit_in_last_place = V{} + 0x1.8p23F;
  const V below = quotient < most ? quotient : most;
  const V code = below > -most ? below : -most;
  return (code + unit_in_last_place) - unit_in_last_place;
}

/// x / c for the choice of a code.
template <class V>
ZF_FORMULA V quotient_of(V x, float scale) {
  return scale > 0.0F ? x / (V{} + scale) : V{};
}

/// The scale of a block by its largest magnitude.
ZF_FORMULA float scale_of(QuantFormat format, float magnitude) {
  return format == QuantFormat::kNf4 ? magnitude : magnitude / 127.0F;
}

/// The larger one, or NaN where there is one.
ZF_FORMULA float larger_or_nan(float a, float b) { return b > a || b != b ? b : a; }

ZF_FORMULA QuantGroup group_of(const float* scales, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += static_cast<double>(scales[i]);
  const float offset = static_cast<float>(sum / count);
  float distance = 0;
  for (int i = 0; i < count; ++i) {
    const float difference = scales[i] - offset;
    distance = larger_or_nan(distance, difference < 0.0F ? -difference : difference);
  }
  return {offset, distance / 127.0F};
}

ZF_FORMULA int8_t scale_code(const QuantGroup& group, float scale) {
  return static_cast<int8_t>(int8_code(quotient_of(scale - group.offset, group.step)));
}

ZF_FORMULA float restored_scale(const QuantGroup& group, int8_t code) {
  const float scale = group.offset + static_cast<float>(code) * group.step;
  return scale < 0.0F ? 0.0F : scale;
}

/// The restored scale of a block.
ZF_FORMULA float scale_at(const ConstQuantBlocks& matrix, int64_t block) {
  return restored_scale(matrix.groups[block / kQuantGroup], matrix.scale_codes[block]);
}

}  // namespace zerofleet
