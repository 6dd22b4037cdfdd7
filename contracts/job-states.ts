import type { JobState } from './types.js';

/**
 * The states that each state may be followed by. `recovering` follows every state in which a worker holds the job: that
 * is where the next worker finds it when the one before died. `starting` follows `running` when the job goes on with other
 * ranks.
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

/** Whether a job in `from` may go to `to`. */
export function canTransition(from: JobState, to: JobState): boolean {
  return JOB_TRANSITIONS[from].includes(to);
}

/** Whether a job never leaves `state`. */
export function isFinal(state: JobState): state is FinalJobState {
  return JOB_TRANSITIONS[state].length === 0;
}

/** Whether a worker holds a job in `state`, or is about to. */
export function isActive(state: JobState): boolean {
  return !isFinal(state) && state !== 'queued' && state !== 'paused';
}
