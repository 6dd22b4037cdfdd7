/** Tests of writes under a lease, on a fake clock. */
import { setImmediate as settled } from 'node:timers/promises';
import t from 'tap';
import { type ErrorCode, ZerofleetError } from '../../../contracts/index.js';
import type { Control } from '../../../state/index.js';
import type { Deferred } from '../../shared/deferred.js';
import {
  answers,
  away,
  control,
  EXECUTION,
  fenced,
  LEASE_MS,
  lease,
  RENEWED_EVERY_MS,
  RETRY_MS,
  watched,
} from '../../testing/held-lease.js';

t.test('a write is retried while the store is unavailable', async (t) => {
  const { held, clock } = lease(t, async () => control);
  const tries: unknown[] = [];
  const call = watched(
    held.call(async (jobId, execution) => {
      tries.push({ jobId, execution, at: clock.now() });
      if (tries.length < 3) throw away();
      return 'done';
    }),
  );
  await clock.pass(2 * RETRY_MS);
  const as = { jobId: 'job', execution: EXECUTION };
  t.strictSame(
    tries,
    [0, 1, 2].map((i) => ({ ...as, at: i * RETRY_MS })),
  );
  t.strictSame(call, { isSettled: true, value: 'done' });
});

t.test('a write ends with the lease, and does not start without one', async (t) => {
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

t.test('a write that waits for its retry ends when the lease is lost', async (t) => {
  const { held } = lease(t, async () => control);
  const call = watched(held.call(() => Promise.reject(away())));
  await settled();
  const reason = new Error('the queue took it back');
  held.lose(reason);
  await settled();
  t.equal(call.error, reason);
});

t.test('a refused write ends the lease only if it was fenced', async (t) => {
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

t.test('confirm asks the store whether the lease holds, with retries', async (t) => {
  let tries = 0;
  const { held, clock, requests } = lease(t, async () => {
    tries += 1;
    if (tries === 1) throw away();
    return control;
  });
  const confirmed = watched(held.confirm());
  await settled();
  t.equal(confirmed.isSettled, false);
  await clock.pass(RETRY_MS);
  t.equal(confirmed.isSettled, true);
  t.strictSame(requests, [
    ['job', EXECUTION, LEASE_MS],
    ['job', EXECUTION, LEASE_MS],
  ]);
});

t.test('a refused confirmation ends the lease at once', async (t) => {
  const { held } = lease(t, () => Promise.reject(fenced()));
  await t.rejects(held.confirm(), { code: 'stale_epoch', message: 'epoch 4' });
  t.match(held.lost.reason, { code: 'stale_epoch', message: 'epoch 4' });
});

t.test('an abandoned lease is lost for the first reason and not renewed', async (t) => {
  const { held, clock, requested_at } = lease(t, async () => control);
  const reason = new Error('first');
  held.lose(reason);
  held.lose(new Error('second'));
  t.equal(held.lost.reason, reason);
  await clock.pass(LEASE_MS);
  t.strictSame(requested_at, []);
});

t.test('a closed lease is not renewed and not lost', async (t) => {
  const { held, clock, requested_at } = lease(t, async () => control);
  await Promise.all([held.close(), held.close()]);
  await clock.pass(2 * LEASE_MS);
  t.strictSame(requested_at, []);
  t.equal(held.lost.aborted, false);
});

t.test('close waits for a renewal in progress and ignores its result', async (t) => {
  for (const end of [
    (answer: Deferred<Control>) => answer.resolve(control),
    (answer: Deferred<Control>) => answer.reject(fenced()),
    (answer: Deferred<Control>) => answer.reject(away()),
  ]) {
    const { open, answer } = answers();
    const { held, clock, requested_at } = lease(t, answer);
    await clock.pass(RENEWED_EVERY_MS);
    const closed = watched(held.close());
    await settled();
    t.equal(closed.isSettled, false);
    end(open[0] as Deferred<Control>);
    await settled();
    t.equal(closed.isSettled, true);
    await clock.pass(2 * LEASE_MS);
    t.equal(requested_at.length, 1);
    t.equal(held.lost.aborted, false);
  }
});
