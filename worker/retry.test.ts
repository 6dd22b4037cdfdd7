import t from 'tap';
import { backoffMs } from './retry.js';

const POLICY = { attempts: 10, first_delay_ms: 100, max_delay_ms: 1_000 };

t.test('pauses double up to the longest, each between a half and all of it', async (t) => {
  const pauses = (random: number) => [1, 2, 3, 4, 5, 60].map((n) => backoffMs(POLICY, n, () => random));
  t.strictSame(pauses(0), [50, 100, 200, 400, 500, 500]);
  t.strictSame(pauses(1), [100, 200, 400, 800, 1_000, 1_000]);
});

t.test('those who failed together come back at different times', async (t) => {
  t.ok(new Set(Array.from({ length: 20 }, () => backoffMs(POLICY, 3))).size > 1);
});
