#include "kernels/quantize/simd/quantize.h"

#include "kernels/common/simd/elements.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

/// The elements of a block in fp32, zeros beyond the end of its row.
struct BlockValues {
  float v[kQuantBlock];
};

template <class T>
ZF_INLINE BlockValues values_of(const ConstRows& source, int64_t cols, int64_t block) {
  const int64_t of_row = quant_blocks_of_row(cols);
  const T* first = row_of<T>(source, block / of_row) + block % of_row * kQuantBlock;
  BlockValues values{};
  sweep(elements_of_block(cols, block % of_row),
        [&](int64_t i, auto part) ZF_INLINE_LAMBDA { store(values.v + i, load(first + i, part), part); });
  return values;
}

/// As unsigned numbers, magnitudes have the order of floats, with NaN above infinity.
ZF_INLINE float magnitude_of(const BlockValues& values) {
  vu most{};
  for (int i = 0; i < kQuantBlock; i += kLanes) {
    const vu magnitude = as_bits(load(values.v + i)) & 0x7fffffffU;
    most = magnitude > most ? magnitude : most;
  }
  const vf magnitudes = from_bits(most);
  float largest = 0;
  for (int i = 0; i < kLanes; ++i) largest = larger_or_nan(largest, magnitudes[i]);
  return largest;
}

ZF_INLINE void write_codes(QuantFormat format, const BlockValues& values, float scale, uint8_t* target) {
  float codes[kQuantBlock];
  for (int i = 0; i < kQuantBlock; i += kLanes) {
    const vf quotient = quotient_of(load(values.v + i), scale);
    store(codes + i, format == QuantFormat::kNf4 ? nf4_code(quotient) : int8_code(quotient));
  }
  if (format == QuantFormat::kInt8) {
    for (int i = 0; i < kQuantBlock; ++i) target[i] = static_cast<uint8_t>(static_cast<int8_t>(codes[i]));
    return;
  }
  for (int i = 0; i < kQuantBlock / 2; ++i) {
    target[i] = static_cast<uint8_t>(static_cast<int>(codes[i]) | static_cast<int>(codes[i + kQuantBlock / 2]) << 4);
  }
}

template <class T>
void quantize_group_of(const ConstRows& source, const QuantBlocks& target, int64_t group) {
  const int64_t blocks = target.rows * quant_blocks_of_row(target.cols), first = group * kQuantGroup;
  const int count = static_cast<int>(blocks - first < kQuantGroup ? blocks - first : kQuantGroup);
  float scales[kQuantGroup];
  for (int i = 0; i < count; ++i) {
    scales[i] = scale_of(target.format, magnitude_of(values_of<T>(source, target.cols, first + i)));
  }
  const QuantGroup of_scales = group_of(scales, count);
  target.groups[group] = of_scales;
  for (int i = 0; i < count; ++i) {
    const int64_t block = first + i;
    const int8_t code = scale_code(of_scales, scales[i]);
    target.scale_codes[block] = code;
    write_codes(target.format, values_of<T>(source, target.cols, block), restored_scale(of_scales, code),
                target.codes + block * code_bytes_of_block(target.format));
  }
}

}  // namespace

void quantize_group(const ConstRows& source, DType dtype, const QuantBlocks& target, int64_t group) {
  with_element(dtype, [&]<class T>(T*) { quantize_group_of<T>(source, target, group); });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
