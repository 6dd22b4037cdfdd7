import t from 'tap';
import { GracePeriod } from './grace-period.js';

t.test('SIGTERM is a notice with the time until SIGKILL', async (t) => {
  const watched = new GracePeriod(60_000).watch(new AbortController().signal);
  const before = Date.now();
  process.emit('SIGTERM', 'SIGTERM');
  const notice = await watched;
  const leftMs = (notice?.terminates_at ?? 0) - before;
  t.ok(leftMs >= 50_000 && leftMs <= 60_000 + (Date.now() - before));
});

t.test('an agent that ends by itself gets none', async (t) => {
  const ending = new AbortController();
  const watched = new GracePeriod(60_000).watch(ending.signal);
  ending.abort();
  t.equal(await watched, null);
});
