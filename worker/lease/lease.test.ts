/** Duration of a lease, on a fake clock. */
import t from 'tap';
import { ZerofleetError } from '../../contracts/index.js';
import { createLogger } from '../../platform/logging/logging.js';
import { deferred } from '../common/deferred.js';
import { FakeClock } from '../testing/fake-clock.js';
import {
  answers,
  away,
  control,
  EXECUTION,
  fenced,
  LEASE_MS,
  lease,
  lostWithin,
  RENEWED_EVERY_MS,
  RETRY_MS,
} from '../testing/held-lease.js';
import { Lease } from './lease.js';

const log = createLogger({ level: 'silent', name: 'test' });

t.test('it is renewed three times in its length, and each renewal tells what people want', async (t) => {
  const { held, clock, seen, asked, asked_at } = lease(t, async () => control);
  await clock.pass(10 * LEASE_MS);
  t.equal(held.lost.aborted, false);
  t.strictSame(
    asked_at,
    Array.from({ length: 30 }, (_, i) => (i + 1) * RENEWED_EVERY_MS),
  );
  t.strictSame(asked[0], ['job', EXECUTION, LEASE_MS]);
  t.strictSame(
    seen,
    asked.map(() => control),
  );
});

t.test('the next renewal is a third later than the answer to the last one', async (t) => {
  const { open, answer } = answers();
  const { clock, asked_at } = lease(t, answer);
  await clock.pass(RENEWED_EVERY_MS + 500);
  open[0]?.resolve(control);
  await clock.pass(LEASE_MS / 2);
  t.strictSame(asked_at, [RENEWED_EVERY_MS, 2 * RENEWED_EVERY_MS + 500]);
});

t.test('it lasts from the moment in which it was claimed', async (t) => {
  const clock = new FakeClock();
  clock.jump(5_000);
  const parts = lease(t, () => new Promise(() => undefined), { clock });
  t.equal(await lostWithin(LEASE_MS, parts), LEASE_MS);
  t.strictSame(parts.asked_at, [8_000], 'who asks as late as that has the rest of the lease for an answer');
});

t.test('one that had run out before it was kept is lost without a question', async (t) => {
  const clock = new FakeClock();
  clock.jump(LEASE_MS);
  const parts = lease(t, async () => control, { clock });
  t.equal(await lostWithin(1, parts), LEASE_MS);
  t.strictSame(parts.asked_at, []);
});

t.test('a renewal counts from the moment in which it was asked for', async (t) => {
  const { open, answer } = answers();
  const parts = lease(t, answer);
  await parts.clock.pass(RENEWED_EVERY_MS + 2_000);
  open[0]?.resolve(control);
  t.equal(await lostWithin(10 * LEASE_MS, parts), RENEWED_EVERY_MS + LEASE_MS);
  t.match(parts.held.lost.reason, { code: 'stale_epoch' });
});

t.test('it is lost when the store has been silent for its whole length, to the millisecond', async (t) => {
  let isAway = false;
  const parts = lease(t, async () => {
    if (isAway) throw away();
    return control;
  });
  await parts.clock.pass(2 * RENEWED_EVERY_MS);
  isAway = true;
  t.equal(await lostWithin(10 * LEASE_MS, parts), 2 * RENEWED_EVERY_MS + LEASE_MS);
  t.match(parts.held.lost.reason, { code: 'stale_epoch' });
  const first = 3 * RENEWED_EVERY_MS;
  const retries = Array.from({ length: 24 }, (_, i) => first + i * RETRY_MS);
  t.strictSame(parts.asked_at.slice(2), retries, 'it was asked again and again until then, and not after');
});

t.test('the end of a lease does not wait for the next try', async (t) => {
  const parts = lease(t, () => Promise.reject(away()), { lease_ms: 900 });
  t.equal(await lostWithin(10_000, parts), 900);
  t.strictSame(parts.asked_at, [300, 550, 800]);
});

t.test('a store that comes back in time gives the whole lease again', async (t) => {
  let isAway = true;
  const parts = lease(t, async () => {
    if (isAway) throw away();
    return control;
  });
  await parts.clock.pass(LEASE_MS - RETRY_MS - 1);
  isAway = false;
  await parts.clock.pass(LEASE_MS);
  t.equal(parts.held.lost.aborted, false);
  const last = LEASE_MS - RETRY_MS;
  t.strictSame(
    parts.asked_at.slice(-3),
    [0, 1, 2].map((i) => last + i * RENEWED_EVERY_MS),
  );
});

t.test('a store that hangs is a store that is silent', async (t) => {
  const parts = lease(t, () => new Promise(() => undefined));
  t.equal(await lostWithin(10 * LEASE_MS, parts), LEASE_MS);
  t.match(parts.held.lost.reason, { code: 'stale_epoch' });
  t.strictSame(parts.asked_at, [RENEWED_EVERY_MS], 'one call hung all the time');
});

t.test('an answer that came while the process was stopped for too long counts for nothing', async (t) => {
  const { open, answer } = answers();
  const parts = lease(t, answer);
  await parts.clock.pass(RENEWED_EVERY_MS);
  parts.clock.jump(LEASE_MS);
  open[0]?.resolve(control);
  t.equal(await lostWithin(1, parts), RENEWED_EVERY_MS + LEASE_MS);
  t.match(parts.held.lost.reason, { code: 'stale_epoch' });
  t.equal(parts.asked_at.length, 1);
});

t.test('one that is stopped between two renewals for too long is lost before it asks', async (t) => {
  const parts = lease(t, async () => control);
  parts.clock.jump(LEASE_MS);
  t.equal(await lostWithin(1, parts), LEASE_MS);
  t.strictSame(parts.asked_at, []);
});

t.test('it is lost at once when a renewal is refused, with what the store says', async (t) => {
  for (const error of [fenced(), new ZerofleetError('job_final', ''), new Error('a bug')]) {
    const parts = lease(t, () => Promise.reject(error));
    t.equal(await lostWithin(LEASE_MS, parts), RENEWED_EVERY_MS);
    t.equal(parts.held.lost.reason, error);
    await parts.clock.pass(LEASE_MS);
    t.equal(parts.asked_at.length, 1, 'and it is not asked for again');
  }
});

t.test('by itself it goes by the time of the machine', async (t) => {
  const asked = deferred<void>();
  const options = { job_id: 'job', execution: EXECUTION, log, onControl: () => undefined, lease_ms: 30_000 };
  const store = {
    renewLease: async () => {
      asked.resolve();
      return control;
    },
  };
  // As if it had been claimed long ago.
  const lapsed = new Lease({ ...options, store }, performance.now() - 30_000);
  const held = new Lease({ ...options, store, lease_ms: 3 }, performance.now() + 60_000);
  t.teardown(() => Promise.all([lapsed.close(), held.close()]));
  if (!lapsed.lost.aborted)
    await new Promise((resolve) => lapsed.lost.addEventListener('abort', resolve, { once: true }));
  t.match(lapsed.lost.reason, { code: 'stale_epoch' });
  await asked.promise;
});
