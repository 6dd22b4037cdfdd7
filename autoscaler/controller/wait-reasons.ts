/** Reasons for which waiting jobs get no machines, as the event `job.waiting` reports them. */
import type { Demand } from './demand.js';
import type { Decision, LaunchProblem, PoolReport, PoolState, WaitReason } from './types.js';

const MESSAGES: Readonly<Record<WaitReason, string>> = {
  too_large: 'the job needs more ranks than the machines of the pool can have',
  quota: "the job would exceed the project's max_ranks",
  capacity: 'the pool has its maximum of machines',
  budget: "the pool's budget of the day is spent; machines are requested again after midnight, UTC",
  gang: 'only a part of the machines that the job needs came in time; they were given up, and all are requested again later',
  launch_failed: 'machines that it needs could not be launched; they are requested again',
};

/** Returns the reason of each job that is refused, and of those whose machines cannot be launched. */
export function waitReasons(
  { admitted, refused }: Demand,
  problems: readonly LaunchProblem[],
): Map<string, WaitReason> {
  const waiting = problems.length === 0 ? [] : admitted.filter(({ held }) => held === 0);
  return new Map<string, WaitReason>([
    ...waiting.map(({ id }) => [id, 'launch_failed'] as const),
    ...refused,
  ]);
}

/** Returns the reasons that differ from those that were last reported. */
export function newReasons(
  reported: PoolState['wait_reasons'],
  reasons: ReadonlyMap<string, WaitReason>,
  problems: readonly LaunchProblem[],
): Decision['explain'] {
  const answers = problems.map(({ type, message }) => `${type}: ${message}`).join('; ');
  return [...reasons]
    .filter(([jobId, reason]) => reported[jobId] !== reason)
    .map(([jobId, reason]) => {
      const message = reason === 'launch_failed' ? `${MESSAGES[reason]}: ${answers}` : MESSAGES[reason];
      return { job_id: jobId, reason, message };
    });
}

export function countReasons(reasons: ReadonlyMap<string, WaitReason>): PoolReport['unschedulable'] {
  const counts = { too_large: 0, quota: 0, capacity: 0, budget: 0, gang: 0, launch_failed: 0 };
  for (const reason of reasons.values()) counts[reason] += 1;
  return counts;
}
