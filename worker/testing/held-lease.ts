/** A lease by a clock that goes on when a test says so, with a job store that answers what the test says. */
import type { Test } from 'tap';
import type { Execution } from '../../contracts/execution.js';
import { ZerofleetError } from '../../contracts/index.js';
import { createLogger } from '../../platform/logging/logging.js';
import type { Control } from '../../state/index.js';
import { type Deferred, deferred } from '../common/deferred.js';
import { Lease } from '../lease/lease.js';
import { FakeClock } from './fake-clock.js';

const log = createLogger({ level: 'silent', name: 'test' });
export const EXECUTION = '3-a' as const;
export const LEASE_MS = 9_000;
export const RENEWED_EVERY_MS = 3_000;
/** Pause after a renewal or a write that failed, in milliseconds. */
export const RETRY_MS = 250;

export const control: Control = {
  desired: 'run',
  state: 'running',
  save_request: 0,
  requested_ranks: 1,
  overrides: '',
  ask: null,
  held_ranks: 0,
};
export const away = () => new ZerofleetError('job_store_unavailable', 'away');
export const fenced = () => new ZerofleetError('stale_epoch', 'epoch 4');

type Renew = () => Promise<Control>;

/** A lease that was claimed when `clock` began. */
export function lease(t: Test, answer: Renew, { clock = new FakeClock(), lease_ms = LEASE_MS } = {}) {
  const seen: Control[] = [];
  /** When each renewal was asked for. */
  const asked_at: number[] = [];
  const asked: unknown[] = [];
  const store = {
    renewLease: (...call: [string, Execution, number]) => {
      asked.push(call);
      asked_at.push(clock.now());
      return answer();
    },
  };
  const onControl = (now: Control) => seen.push(now);
  const held = new Lease({ store, job_id: 'job', execution: EXECUTION, lease_ms, log, onControl, clock }, 0);
  t.teardown(() => held.lose(new Error('the test is over')));
  return { held, clock, seen, asked, asked_at };
}

/** Answers of the store that the test gives, in the order in which they were asked for. */
export function answers() {
  const open: Deferred<Control>[] = [];
  const answer = () => {
    const next = deferred<Control>();
    open.push(next);
    return next.promise;
  };
  return { open, answer };
}

/** A promise whose end can be asked for without waiting. */
export function watched<T>(promise: Promise<T>) {
  const state: { value?: T; error?: unknown; isSettled: boolean } = { isSettled: false };
  promise.then(
    (value) => Object.assign(state, { value, isSettled: true }),
    (error: unknown) => Object.assign(state, { error, isSettled: true }),
  );
  return state;
}

/** Passes time and says when the lease was lost, to the millisecond; null for one that was not. */
export async function lostWithin(ms: number, { held, clock }: { held: Lease; clock: FakeClock }) {
  let lost_at: number | null = null;
  const onLost = () => {
    lost_at = clock.now();
  };
  held.lost.addEventListener('abort', onLost, { once: true });
  await clock.pass(ms);
  held.lost.removeEventListener('abort', onLost);
  return lost_at;
}
