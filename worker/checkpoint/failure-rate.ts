import type { Job } from '../../contracts/index.js';

/** What is assumed before anything was seen: one failure a day. It weighs as much as that day. */
const PRIOR_FAILURES = 1;
const PRIOR_SECONDS = 24 * 3600;

/** Failures in each second of running, from what the job has met so far. */
export function failuresPerSecond({ state_history }: Pick<Job, 'state_history'>, now: Date): number {
  let failures = PRIOR_FAILURES;
  let seconds = PRIOR_SECONDS;
  for (const [i, { state, at }] of state_history.entries()) {
    if (state === 'recovering') failures++;
    const next = state_history[i + 1];
    const until = next ? Date.parse(next.at) : now.getTime();
    if (state === 'running') seconds += Math.max(0, until - Date.parse(at)) / 1000;
  }
  return failures / seconds;
}
