import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import t from 'tap';
import { Utf8Validator } from './utf8.js';

/** Position of the first fault when the bytes arrive in pieces that end at `cuts`; null when there is none. */
function check(bytes: Uint8Array, cuts: readonly number[]): number | null {
  const validator = new Utf8Validator();
  const borders = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort(
    (a, b) => a - b,
  );
  for (let index = 1; index < borders.length; index += 1) {
    const fault = validator.push(bytes.subarray(borders[index - 1], borders[index]));
    if (fault !== null) return fault;
  }
  return validator.end();
}

t.test('text is accepted independently of chunk borders', async (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.array(fc.nat()), (text, cuts) => {
      const bytes = new TextEncoder().encode(text);
      return check(bytes, cuts) === null;
    }),
  );
  t.pass();
});

t.test('bytes are accepted exactly if the whole is UTF-8, independently of chunk borders', async (t) => {
  // Mostly bytes that begin or continue a sequence: uniformly random bytes would fail immediately.
  const byte = fc.oneof(
    fc.nat(255),
    fc.constantFrom(0x61, 0xc3, 0xa9, 0xe4, 0xb8, 0x96, 0xf0, 0x9f, 0x8c, 0x8d, 0xed, 0xa0),
  );
  fc.assert(
    fc.property(fc.array(byte, { maxLength: 12 }), fc.array(fc.nat()), (list, cuts) => {
      const bytes = Uint8Array.from(list);
      return (check(bytes, cuts) === null) === isUtf8(bytes);
    }),
    { numRuns: 2000 },
  );
  t.pass();
});

t.test('the position does not depend on the cuts', async (t) => {
  const faulty: [string, number[], number][] = [
    ['a stray continuation', [0x61, 0x80, 0x62], 1],
    ['an overlong form', [0x61, 0x62, 0xc0, 0xaf], 2],
    ['a surrogate', [0xe4, 0xb8, 0x96, 0xed, 0xa0, 0x80], 3],
    ['above the last code point', [0xf4, 0x90, 0x80, 0x80], 0],
    ['cut off at the end', [0x61, 0xf0, 0x9f, 0x8c], 1],
    ['a lead byte after a cut-off sequence', [0x61, 0xe4, 0xb8, 0x61], 1],
  ];
  for (const [name, list, position] of faulty) {
    const bytes = Uint8Array.from(list);
    t.equal(check(bytes, []), position, name);
    for (let cut = 1; cut < bytes.length; cut += 1)
      t.equal(check(bytes, [cut]), position, `${name}, cut at ${cut}`);
  }
});
