/** Reasons for which Slurm starts no allocations, beyond a queue in which they have their turn. */

import type { Problem } from '../capacity/launch-backoff.js';
import type { EndCause } from './causes.js';
import type { SlurmJob } from './job.js';

const REFUSALS: readonly [Problem['code'], RegExp][] = [
  ['quota', /policy|limit/i],
  ['permission', /account|permi|denied|authori|qos/i],
];

/** Reasons of pending jobs that only the end of other jobs of the account, or another limit, removes. */
const QUOTA = /^(QOS|Assoc)/;
/** Reasons of nodes and partitions that are out of service. */
const UNAVAILABLE = /^(PartitionDown|PartitionInactive|ReqNodeNotAvail|NodeDown)/;

/** Problem of a submission that `sbatch` refuses. */
export function problemOfRefusal(error: unknown): Problem {
  const message = (error as Error).message;
  const [code] = REFUSALS.find(([, words]) => words.test(message)) ?? ['configuration' as const];
  return { code, message };
}

/** Problem of a pending job; null for one that has its turn. */
export function problemOfPending({ reason }: Pick<SlurmJob, 'reason'>): Problem | null {
  if (QUOTA.test(reason)) return { code: 'quota', message: `allocations wait for ${reason}` };
  if (UNAVAILABLE.test(reason)) return { code: 'no_capacity', message: `allocations wait for ${reason}` };
  return null;
}

/** Problem of an allocation that ended at its start, or that Slurm will never start. */
export function problemOfEnd(machine: string, { states, reason }: SlurmJob, cause: EndCause): Problem {
  const message =
    cause === 'refused'
      ? `Slurm never starts ${machine}: ${reason}`
      : `the agent of ${machine} ended at its start (${states.join(', ')}, ${reason}): see its log`;
  return { code: 'configuration', message };
}
