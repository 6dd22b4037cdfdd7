import t from 'tap';
import { seedOf } from './seeds.js';

t.test('neighbouring numbers have different seeds, negative and large ones too', async (t) => {
  t.strictSame([0n, 7n, 2n ** 53n - 1n].map(seedOf), [0, 7, Number.MAX_SAFE_INTEGER]);
  t.equal(seedOf(-7n), 2 ** 53 - 7);
  const last = BigInt(Number.MAX_SAFE_INTEGER);
  t.equal(new Set([0n, 1n, 2n, 3n].map((index) => seedOf(last + index))).size, 4);
});
