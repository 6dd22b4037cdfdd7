/** Tests of the duration of a lease, on a fake clock. */
import t from 'tap';
import { ZerofleetError } from '../../../contracts/index.js';
import { createLogger } from '../../../platform/logging/logging.js';
import { deferred } from '../../shared/deferred.js';
import { FakeClock } from '../../testing/fake-clock.js';
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
} from '../../testing/held-lease.js';
import { Lease } from './lease.js';

const log = createLogger({ level: 'silent', name: 'test' });

t.test('a lease is renewed three times per period, and each renewal returns the control data', async (t) => {
  const { held, clock, seen, requests, requested_at } = lease(t, async () => control);
  await clock.pass(10 * LEASE_MS);
  t.equal(held.lost.aborted, false);
  t.strictSame(
    requested_at,
    Array.from({ length: 30 }, (_, i) => (i + 1) * RENEWED_EVERY_MS),
  );
  t.strictSame(requests[0], ['job', EXECUTION, LEASE_MS]);
  t.strictSame(
    seen,
    requests.map(() => control),
  );
});

t.test('the next renewal is a third of the lease after the reply to the last one', async (t) => {
  const { open, answer } = answers();
  const { clock, requested_at } = lease(t, answer);
  await clock.pass(RENEWED_EVERY_MS + 500);
  open[0]?.resolve(control);
  await clock.pass(LEASE_MS / 2);
  t.strictSame(requested_at, [RENEWED_EVERY_MS, 2 * RENEWED_EVERY_MS + 500]);
});

t.test('a lease lasts from the time of its claim', async (t) => {
  const clock = new FakeClock();
  clock.jump(5_000);
  const parts = lease(t, () => new Promise(() => undefined), { clock });
  t.equal(await lostWithin(LEASE_MS, parts), LEASE_MS);
  t.strictSame(parts.requested_at, [8_000], 'a late renewal has the rest of the lease for its reply');
});

t.test('a lease that expired before its start is lost without a request', async (t) => {
  const clock = new FakeClock();
  clock.jump(LEASE_MS);
  const parts = lease(t, async () => control, { clock });
  t.equal(await lostWithin(1, parts), LEASE_MS);
  t.strictSame(parts.requested_at, []);
});

t.test('a renewal counts from the time of its request', async (t) => {
  const { open, answer } = answers();
  const parts = lease(t, answer);
  await parts.clock.pass(RENEWED_EVERY_MS + 2_000);
  open[0]?.resolve(control);
  t.equal(await lostWithin(10 * LEASE_MS, parts), RENEWED_EVERY_MS + LEASE_MS);
  t.match(parts.held.lost.reason, { code: 'stale_epoch' });
});

t.test('a lease is lost, to the millisecond, when the store was unavailable for its duration', async (t) => {
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
  t.strictSame(parts.requested_at.slice(2), retries, 'it was requested repeatedly until then, and not after');
});

t.test('the expiry of a lease does not wait for the next retry', async (t) => {
  const parts = lease(t, () => Promise.reject(away()), { lease_ms: 900 });
  t.equal(await lostWithin(10_000, parts), 900);
  t.strictSame(parts.requested_at, [300, 550, 800]);
});

t.test('a store that recovers in time renews the full lease', async (t) => {
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
    parts.requested_at.slice(-3),
    [0, 1, 2].map((i) => last + i * RENEWED_EVERY_MS),
  );
});

t.test('a store that hangs counts as unavailable', async (t) => {
  const parts = lease(t, () => new Promise(() => undefined));
  t.equal(await lostWithin(10 * LEASE_MS, parts), LEASE_MS);
  t.match(parts.held.lost.reason, { code: 'stale_epoch' });
  t.strictSame(parts.requested_at, [RENEWED_EVERY_MS], 'one call hung for the whole time');
});

t.test('a reply that arrives after the expiry, while the process was stopped, is ignored', async (t) => {
  const { open, answer } = answers();
  const parts = lease(t, answer);
  await parts.clock.pass(RENEWED_EVERY_MS);
  parts.clock.jump(LEASE_MS);
  open[0]?.resolve(control);
  t.equal(await lostWithin(1, parts), RENEWED_EVERY_MS + LEASE_MS);
  t.match(parts.held.lost.reason, { code: 'stale_epoch' });
  t.equal(parts.requested_at.length, 1);
});

t.test('a lease that expires while the process is stopped is lost before the next renewal', async (t) => {
  const parts = lease(t, async () => control);
  parts.clock.jump(LEASE_MS);
  t.equal(await lostWithin(1, parts), LEASE_MS);
  t.strictSame(parts.requested_at, []);
});

t.test("a refused renewal loses the lease at once, with the store's error", async (t) => {
  for (const error of [fenced(), new ZerofleetError('job_final', ''), new Error('a bug')]) {
    const parts = lease(t, () => Promise.reject(error));
    t.equal(await lostWithin(LEASE_MS, parts), RENEWED_EVERY_MS);
    t.equal(parts.held.lost.reason, error);
    await parts.clock.pass(LEASE_MS);
    t.equal(parts.requested_at.length, 1, 'and it is not requested again');
  }
});

t.test('the default clock is that of the machine', async (t) => {
  const requests = deferred<void>();
  const options = { job_id: 'job', execution: EXECUTION, log, onControl: () => undefined, lease_ms: 30_000 };
  const store = {
    renewLease: async () => {
      requests.resolve();
      return control;
    },
  };
  // The claim was long ago.
  const expired = new Lease({ ...options, store }, performance.now() - 30_000);
  const held = new Lease({ ...options, store, lease_ms: 3 }, performance.now() + 60_000);
  t.teardown(() => Promise.all([expired.close(), held.close()]));
  if (!expired.lost.aborted)
    await new Promise((resolve) => expired.lost.addEventListener('abort', resolve, { once: true }));
  t.match(expired.lost.reason, { code: 'stale_epoch' });
  await requests.promise;
});
