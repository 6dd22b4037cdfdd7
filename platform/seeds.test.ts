import t from 'tap';
import { mixedSeed, seedOf } from './seeds.js';

t.test('neighbouring numbers have different seeds, negative and large ones too', async (t) => {
  t.strictSame([0n, 7n, 2n ** 53n - 1n].map(seedOf), [0, 7, Number.MAX_SAFE_INTEGER]);
  t.equal(seedOf(-7n), 2 ** 53 - 7);
  const last = BigInt(Number.MAX_SAFE_INTEGER);
  t.equal(new Set([0n, 1n, 2n, 3n].map((index) => seedOf(last + index))).size, 4);
});

t.test('streams of neighbouring seeds do not overlap', async (t) => {
  const of = (seed: number) => Array.from({ length: 50 }, (_, index) => mixedSeed(seed, index));
  const seeds = Array.from({ length: 20 }, (_, seed) => of(seed)).flat();
  t.equal(new Set(seeds).size, seeds.length);
  t.strictSame(of(3), of(3));
  t.ok(seeds.every((seed) => Number.isSafeInteger(seed) && seed >= 0));
});
