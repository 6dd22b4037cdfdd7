import type { JobState } from './types.js';

/**
 * Allowed transitions of each state. `recovering` follows every state in which a worker holds the job: the next worker
 * claims it in this state after the previous one died. `starting` follows `running` when the number of ranks changes.
 */
export const JOB_TRANSITIONS: Readonly<Record<JobState, readonly JobState[]>> = {
  queued: ['provisioning', 'recovering', 'paused', 'cancelled', 'failed'],
  provisioning: ['starting', 'recovering', 'pausing', 'cancelling', 'queued', 'failed'],
  starting: ['running', 'recovering', 'pausing', 'cancelling', 'queued', 'failed'],
  running: ['starting', 'recovering', 'pausing', 'cancelling', 'queued', 'succeeded', 'failed'],
  recovering: ['starting', 'running', 'pausing', 'cancelling', 'queued', 'succeeded', 'failed'],
  pausing: ['paused', 'recovering', 'cancelling', 'queued', 'succeeded', 'failed'],
  paused: ['queued', 'cancelled'],
  cancelling: ['cancelled', 'recovering', 'succeeded', 'failed'],
  cancelled: [],
  succeeded: [],
  failed: [],
};

/** Every state, in the order of a job's life. */
export const JOB_STATES = Object.keys(JOB_TRANSITIONS) as JobState[];

export type FinalJobState = 'cancelled' | 'succeeded' | 'failed';

/** True if a job in `from` may change to `to`. */
export function canTransition(from: JobState, to: JobState): boolean {
  return JOB_TRANSITIONS[from].includes(to);
}

/** True if a job never leaves `state`. */
export function isFinal(state: JobState): state is FinalJobState {
  return JOB_TRANSITIONS[state].length === 0;
}

/** True if a worker holds a job in `state` or is about to. */
export function isActive(state: JobState): boolean {
  return !isFinal(state) && state !== 'queued' && state !== 'paused';
}
