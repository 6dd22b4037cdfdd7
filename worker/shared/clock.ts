import { waitOrAbort } from '../../platform/process/retry.js';

/** Monotonic time in milliseconds. Tests control it with `testing/fake-clock.ts`. */
export interface Clock {
  now(): number;
  /** Waits `ms`, or until `signal` is aborted; does not reject. */
  wait(ms: number, signal?: AbortSignal): Promise<void>;
}

export const monotonicClock: Clock = { now: () => performance.now(), wait: waitOrAbort };
