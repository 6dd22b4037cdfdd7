import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { MaskSpool } from './mask-spool.js';
import { Spool } from './spool.js';

/** Spool that stores only its bytes from `kept` on; earlier bytes are never read. */
class EndOfSpool {
  private length = 0;
  private readonly bytes: number[] = [];

  constructor(private readonly kept: number) {}

  push(data: Uint8Array): void {
    const first = Math.max(0, this.kept - this.length);
    this.bytes.push(...data.subarray(first));
    this.length += data.length;
  }

  pushByte(byte: number): void {
    this.push(Uint8Array.of(byte));
  }

  readAt(position: number, count: number): Uint8Array {
    if (position < this.kept) throw new RangeError(`byte ${position} was read`);
    return Uint8Array.from(this.bytes.slice(position - this.kept, position - this.kept + count));
  }

  *read(): Generator<Uint8Array> {
    yield Uint8Array.from(this.bytes);
  }

  close(): void {
    this.length = 0;
  }
}

t.test('bits beyond the first 2^31 tokens are read back correctly', async (t) => {
  const before = 2 ** 31;
  const mask = new MaskSpool(new EndOfSpool(before / 8));
  for (let position = 0; position < before; position += 2 ** 25) mask.push(2 ** 25, null);
  const counts = Uint8Array.from({ length: 21 }, (_, index) => (index % 3 === 0 ? 1 : 0));
  mask.push(21, counts);
  for (const [begin, end] of [
    [0, 21],
    [0, 8],
    [5, 13],
    [17, 21],
  ] as const)
    t.same(mask.read(before + begin, end - begin), counts.subarray(begin, end));
  const [written] = [...mask.finish()];
  t.same(written, [0b01001001, 0b10010010, 0b00100], 'the last partial byte is written, too');
});

t.test('pushed bits are read back from any position', async (t) => {
  const path = join(t.testdir(), 'mask');
  const pushed = fc.array(
    fc.oneof(fc.array(fc.integer({ min: 0, max: 1 }), { maxLength: 40 }), fc.integer({ min: 0, max: 40 })),
    { minLength: 1, maxLength: 9 },
  );
  await fc.assert(
    fc.asyncProperty(pushed, fc.nat(), fc.nat(), async (parts, from, length) => {
      const mask = new MaskSpool(new Spool(path));
      try {
        const all: number[] = [];
        for (const part of parts) {
          if (typeof part === 'number') mask.push(part, null);
          else mask.push(part.length, Uint8Array.from(part));
          all.push(...(typeof part === 'number' ? new Array<number>(part).fill(1) : part));
        }
        const begin = from % (all.length + 1);
        const count = length % (all.length - begin + 1);
        t.same([...mask.read(begin, count)], all.slice(begin, begin + count));
        const bits = [...mask.finish()].flatMap((piece) =>
          [...piece].flatMap((byte) => Array.from({ length: 8 }, (_, bit) => (byte >> bit) & 1)),
        );
        t.same(bits.slice(0, all.length), all);
      } finally {
        mask.close();
      }
    }),
  );
});
