/** Lease on a fake clock, with a job store whose replies the test provides. */
import type { Test } from 'tap';
import type { Execution } from '../../contracts/execution.js';
import { ZerofleetError } from '../../contracts/index.js';
import { createLogger } from '../../platform/logging/logging.js';
import type { Control } from '../../state/index.js';
import { Lease } from '../agent/lease/lease.js';
import { type Deferred, deferred } from '../shared/deferred.js';
import { FakeClock } from './fake-clock.js';

const log = createLogger({ level: 'silent', name: 'test' });
export const EXECUTION = '3-a' as const;
export const LEASE_MS = 9_000;
export const RENEWED_EVERY_MS = 3_000;
/** Delay after a failed renewal or write, in milliseconds. */
export const RETRY_MS = 250;

export const control: Control = {
  desired: 'run',
  state: 'running',
  save_request: 0,
  requested_ranks: 1,
  overrides: '',
  preemption_request: null,
  held_ranks: 0,
  moves: false,
};
export const away = () => new ZerofleetError('job_store_unavailable', 'away');
export const fenced = () => new ZerofleetError('stale_epoch', 'epoch 4');

type Renew = () => Promise<Control>;

/** Returns a lease that was claimed at the start of `clock`. */
export function lease(t: Test, answer: Renew, { clock = new FakeClock(), lease_ms = LEASE_MS } = {}) {
  const seen: Control[] = [];
  /** Times of the renewal requests. */
  const requestedAt: number[] = [];
  const requests: unknown[] = [];
  const store = {
    renewLease: (...call: [string, Execution, number]) => {
      requests.push(call);
      requestedAt.push(clock.now());
      return answer();
    },
  };
  const onControl = (now: Control) => seen.push(now);
  const held = new Lease({ store, job_id: 'job', execution: EXECUTION, lease_ms, log, onControl, clock }, 0);
  t.teardown(() => held.lose(new Error('the test is over')));
  return { held, clock, seen, requests, requested_at: requestedAt };
}

/** Replies of the store in the order of the requests, settled by the test. */
export function answers() {
  const open: Deferred<Control>[] = [];
  const answer = () => {
    const next = deferred<Control>();
    open.push(next);
    return next.promise;
  };
  return { open, answer };
}

/** Tracks a promise, so that its state can be read without waiting. */
export function watched<T>(promise: Promise<T>) {
  const state: { value?: T; error?: unknown; isSettled: boolean } = { isSettled: false };
  promise.then(
    (value) => Object.assign(state, { value, isSettled: true }),
    (error: unknown) => Object.assign(state, { error, isSettled: true }),
  );
  return state;
}

/** Advances the clock and returns when the lease was lost, to the millisecond; null if it was not. */
export async function lostWithin(ms: number, { held, clock }: { held: Lease; clock: FakeClock }) {
  let lostAt: number | null = null;
  const onLost = () => {
    lostAt = clock.now();
  };
  held.lost.addEventListener('abort', onLost, { once: true });
  await clock.pass(ms);
  held.lost.removeEventListener('abort', onLost);
  return lostAt;
}
