/** A lease by a clock that goes on when the test says so: nothing here waits. */
import { setImmediate as settled } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { type ErrorCode, ZerofleetError } from '../../contracts/index.js';
import type { Control } from '../../platform/job-store/port.js';
import { createLogger } from '../../platform/logging.js';
import { type Deferred, deferred } from '../deferred.js';
import { FakeClock } from '../testing/fake-clock.js';
import { Lease } from './lease.js';

const log = createLogger({ level: 'silent', name: 'test' });
const LEASE_MS = 9_000;
const RENEWED_EVERY_MS = 3_000;
/** Of a renewal, and of a write, that failed. */
const RETRY_MS = 250;

const control: Control = {
  desired: 'run',
  state: 'running',
  epoch: 3,
  save_request: 0,
  requested_ranks: 1,
  ask: null,
};
const away = () => new ZerofleetError('job_store_unavailable', 'away');
const fenced = () => new ZerofleetError('stale_epoch', 'epoch 4');

type Renew = () => Promise<Control>;

/** A lease that was claimed when `clock` began. */
function lease(t: Test, answer: Renew, { clock = new FakeClock(), lease_ms = LEASE_MS } = {}) {
  const seen: Control[] = [];
  /** When each renewal was asked for. */
  const asked_at: number[] = [];
  const asked: unknown[] = [];
  const store = {
    renewLease: (...call: [string, number, number]) => {
      asked.push(call);
      asked_at.push(clock.now());
      return answer();
    },
  };
  const onControl = (now: Control) => seen.push(now);
  const held = new Lease({ store, job_id: 'job', epoch: 3, lease_ms, log, onControl, clock }, 0);
  t.teardown(() => held.lose(new Error('the test is over')));
  return { held, clock, seen, asked, asked_at };
}

/** Answers of the store that the test gives, in the order in which they were asked for. */
function answers() {
  const open: Deferred<Control>[] = [];
  const answer = () => {
    const next = deferred<Control>();
    open.push(next);
    return next.promise;
  };
  return { open, answer };
}

/** A promise whose end can be asked for without waiting. */
function watched<T>(promise: Promise<T>) {
  const state: { value?: T; error?: unknown; isSettled: boolean } = { isSettled: false };
  promise.then(
    (value) => Object.assign(state, { value, isSettled: true }),
    (error: unknown) => Object.assign(state, { error, isSettled: true }),
  );
  return state;
}

/** Passes time and says when the lease was lost, to the millisecond; null for one that was not. */
async function lostWithin(ms: number, { held, clock }: { held: Lease; clock: FakeClock }) {
  let lost_at: number | null = null;
  const onLost = () => {
    lost_at = clock.now();
  };
  held.lost.addEventListener('abort', onLost, { once: true });
  await clock.pass(ms);
  held.lost.removeEventListener('abort', onLost);
  return lost_at;
}

t.test('it is renewed three times in its length, and each renewal tells what people want', async (t) => {
  const { held, clock, seen, asked, asked_at } = lease(t, async () => control);
  await clock.pass(10 * LEASE_MS);
  t.equal(held.lost.aborted, false);
  t.strictSame(
    asked_at,
    Array.from({ length: 30 }, (_, i) => (i + 1) * RENEWED_EVERY_MS),
  );
  t.strictSame(asked[0], ['job', 3, LEASE_MS]);
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

t.test('a write is repeated while the store is away', async (t) => {
  const { held, clock } = lease(t, async () => control);
  const tries: unknown[] = [];
  const call = watched(
    held.call(async (jobId, epoch) => {
      tries.push({ jobId, epoch, at: clock.now() });
      if (tries.length < 3) throw away();
      return 'done';
    }),
  );
  await clock.pass(2 * RETRY_MS);
  const as = { jobId: 'job', epoch: 3 };
  t.strictSame(
    tries,
    [0, 1, 2].map((i) => ({ ...as, at: i * RETRY_MS })),
  );
  t.strictSame(call, { isSettled: true, value: 'done' });
});

t.test('a write ends with the lease, and is not begun without one', async (t) => {
  const parts = lease(t, () => Promise.reject(away()));
  let tries = 0;
  const write = async () => {
    tries += 1;
    throw away();
  };
  const call = watched(parts.held.call(write));
  await parts.clock.pass(LEASE_MS - 1);
  t.equal(call.isSettled, false);
  await parts.clock.pass(1);
  t.equal(call.error, parts.held.lost.reason);
  t.match(call.error, { code: 'stale_epoch' });
  const before = tries;
  await t.rejects(parts.held.call(write), { code: 'stale_epoch' });
  t.equal(tries, before);
});

t.test('a write that waits for its next try ends in the moment in which the lease is lost', async (t) => {
  const { held } = lease(t, async () => control);
  const call = watched(held.call(() => Promise.reject(away())));
  await settled();
  const reason = new Error('the queue took it back');
  held.lose(reason);
  await settled();
  t.equal(call.error, reason);
});

t.test('a refused write ends the lease only when it was fenced', async (t) => {
  const refuse = (code: ErrorCode) => () => Promise.reject(new ZerofleetError(code, ''));
  for (const [code, isLost] of [
    ['invalid_transition', false],
    ['stale_epoch', true],
    ['job_final', true],
    ['job_not_found', true],
  ] as const) {
    const { held } = lease(t, async () => control);
    await t.rejects(held.call(refuse(code)), { code });
    t.equal(held.lost.aborted, isLost, code);
    if (isLost) t.match(held.lost.reason, { code });
  }
});

t.test('the store is asked whether the lease holds, again while it does not answer', async (t) => {
  let tries = 0;
  const { held, clock, asked } = lease(t, async () => {
    tries += 1;
    if (tries === 1) throw away();
    return control;
  });
  const confirmed = watched(held.confirm());
  await settled();
  t.equal(confirmed.isSettled, false);
  await clock.pass(RETRY_MS);
  t.equal(confirmed.isSettled, true);
  t.strictSame(asked, [
    ['job', 3, LEASE_MS],
    ['job', 3, LEASE_MS],
  ]);
});

t.test('what it says is believed at once', async (t) => {
  const { held } = lease(t, () => Promise.reject(fenced()));
  await t.rejects(held.confirm(), { code: 'stale_epoch', message: 'epoch 4' });
  t.match(held.lost.reason, { code: 'stale_epoch', message: 'epoch 4' });
});

t.test('one that is given up is lost for the first reason, and renewed no more', async (t) => {
  const { held, clock, asked_at } = lease(t, async () => control);
  const reason = new Error('first');
  held.lose(reason);
  held.lose(new Error('second'));
  t.equal(held.lost.reason, reason);
  await clock.pass(LEASE_MS);
  t.strictSame(asked_at, []);
});

t.test('one that is closed is renewed no more, and not lost', async (t) => {
  const { held, clock, asked_at } = lease(t, async () => control);
  await Promise.all([held.close(), held.close()]);
  await clock.pass(2 * LEASE_MS);
  t.strictSame(asked_at, []);
  t.equal(held.lost.aborted, false);
});

t.test('closing waits for the renewal that is on its way, whose end does not matter any more', async (t) => {
  for (const end of [
    (answer: Deferred<Control>) => answer.resolve(control),
    (answer: Deferred<Control>) => answer.reject(fenced()),
    (answer: Deferred<Control>) => answer.reject(away()),
  ]) {
    const { open, answer } = answers();
    const { held, clock, asked_at } = lease(t, answer);
    await clock.pass(RENEWED_EVERY_MS);
    const closed = watched(held.close());
    await settled();
    t.equal(closed.isSettled, false);
    end(open[0] as Deferred<Control>);
    await settled();
    t.equal(closed.isSettled, true);
    await clock.pass(2 * LEASE_MS);
    t.equal(asked_at.length, 1);
    t.equal(held.lost.aborted, false);
  }
});

t.test('by itself it goes by the time of the machine', async (t) => {
  const asked = deferred<void>();
  const options = { job_id: 'job', epoch: 3, log, onControl: () => undefined, lease_ms: 30_000 };
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
