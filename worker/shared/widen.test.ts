import t from 'tap';
import { widenToFp32 } from './widen.js';

const floats = (bytes: Uint8Array) => new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
const all = Uint16Array.from({ length: 65536 }, (_, half) => half);

/** Returns the value of an fp16 by its definition. */
function fp16Value(half: number): number {
  const sign = half & 0x8000 ? -1 : 1;
  const [exponent, fraction] = [(half >> 10) & 31, half & 1023];
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25));
}

t.test('every fp16 becomes the fp32 of the same value', async (t) => {
  const values = floats(widenToFp32('F16', new Uint8Array(all.buffer)));
  t.ok(all.every((half) => Object.is(values[half], fp16Value(half))));
});

t.test('every bf16 becomes the fp32 with it as upper half', async (t) => {
  const words = new Uint32Array(floats(widenToFp32('BF16', new Uint8Array(all.buffer))).buffer);
  t.ok(all.every((half) => words[half] === (half << 16) >>> 0));
});

t.test('fp32 is unchanged, and bytes may be unaligned', async (t) => {
  const bytes = Buffer.from([9, 0, 0, 128, 63, 0, 0, 0]);
  t.equal(widenToFp32('F32', bytes), bytes);
  t.equal(floats(widenToFp32('BF16', bytes.subarray(3, 5)))[0], 1);
});
