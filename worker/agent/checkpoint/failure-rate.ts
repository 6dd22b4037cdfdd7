import type { Job } from '../../../contracts/index.js';

/** Prior estimate: one failure a day, with the weight of one observed day. */
const PRIOR_FAILURES = 1;
const PRIOR_SECONDS = 24 * 3600;

/** Returns the failures per second of running, from the job's history. */
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
