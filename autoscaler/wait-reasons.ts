import type { UnschedulableReason } from './controller/types.js';

/** Message of a job's event `job.waiting`, by the reason for which no machines are requested for it. */
export const WAIT_REASONS: Readonly<Record<UnschedulableReason, string>> = {
  too_large: 'the job needs more ranks than the machines of the pool can have',
  quota: "the job would exceed the project's max_ranks",
  capacity: 'the pool has its maximum of machines, or none of the remaining types can be had now',
  budget: "the pool's budget of the day is spent; machines are requested again after midnight, UTC",
  gang: 'only a part of the machines that the job needs came in time; they were given up, and all are requested again later',
};
