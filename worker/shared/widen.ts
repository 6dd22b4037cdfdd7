/** Exact conversion of 16-bit floats to fp32; nothing is rounded. */
import type { WeightDtype } from '../../formats/models/weights.js';

/** Converts weights to fp32. @returns fp32, little-endian; for F32 the bytes themselves */
export function widenToFp32(dtype: WeightDtype, bytes: Uint8Array): Uint8Array {
  if (dtype === 'F32') return bytes;
  const table = dtype === 'F16' ? halfTable() : null;
  const words = new Uint32Array(bytes.length / 2);
  for (let i = 0; i < words.length; i++) {
    const half = (bytes[2 * i] as number) | ((bytes[2 * i + 1] as number) << 8);
    words[i] = table === null ? half << 16 : (table[half] as number);
  }
  return new Uint8Array(words.buffer);
}

let halves: Uint32Array | null = null;

/** Returns the fp32 bits of every fp16 value. */
function halfTable(): Uint32Array {
  halves ??= Uint32Array.from({ length: 65536 }, (_, half) => fp32Bits(half));
  return halves;
}

const FP16_BIAS = 15;
const FP32_BIAS = 127;
const FP16_FRACTION_BITS = 10;
const FP32_FRACTION_BITS = 23;

function fp32Bits(half: number): number {
  const sign = (half >>> 15) << 31;
  let exponent = (half >>> FP16_FRACTION_BITS) & 0x1f;
  let fraction = half & 0x3ff;
  if (exponent === 0x1f) return sign | 0x7f80_0000 | (fraction << (FP32_FRACTION_BITS - FP16_FRACTION_BITS));
  if (exponent === 0) {
    if (fraction === 0) return sign;
    // A subnormal fp16 is a normal fp32: its first bit becomes the implicit one.
    exponent = 1;
    while ((fraction & 0x400) === 0) {
      fraction <<= 1;
      exponent--;
    }
    fraction &= 0x3ff;
  }
  return (
    sign |
    ((exponent - FP16_BIAS + FP32_BIAS) << FP32_FRACTION_BITS) |
    (fraction << (FP32_FRACTION_BITS - FP16_FRACTION_BITS))
  );
}
