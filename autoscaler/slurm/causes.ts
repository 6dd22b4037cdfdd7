/** States of Slurm jobs as the autoscaler sees them. */
import type { SlurmJob } from './job.js';

/** Cause for which an allocation ended without a request of the autoscaler. */
export type EndCause =
  /** The agent ended by itself, without an error. */
  | 'completed'
  /** The agent ended with an error, or was killed for its memory. */
  | 'failed'
  | 'time_limit'
  | 'preempted'
  | 'node_failed'
  /** Ended by its user or an administrator. */
  | 'cancelled'
  /** Put back into the queue by Slurm, which will start it again. */
  | 'requeued'
  /** Slurm will never start it as it is, or holds it. */
  | 'refused'
  /** Neither the queue nor the accounting knows it any more. */
  | 'unknown';

const CAUSES: Record<string, EndCause> = {
  COMPLETED: 'completed',
  FAILED: 'failed',
  OUT_OF_MEMORY: 'failed',
  TIMEOUT: 'time_limit',
  DEADLINE: 'time_limit',
  PREEMPTED: 'preempted',
  NODE_FAIL: 'node_failed',
  BOOT_FAIL: 'node_failed',
  CANCELLED: 'cancelled',
  REVOKED: 'cancelled',
};

/** Reasons for which a pending job waits for an operator, or for ever. */
const HOPELESS = new Set([
  ...['AccountNotAllowed', 'BadConstraints', 'InvalidAccount', 'InvalidQOS', 'QOSNotAllowed'],
  ...['AssocMaxWallDurationPerJobLimit', 'QOSMaxWallDurationPerJobLimit', 'PartitionTimeLimit'],
  ...['PartitionNodeLimit', 'JobHeldAdmin', 'JobHeldUser', 'JobHoldMaxRequeue', 'JobLaunchFailure'],
  ...['DeadLine', 'DependencyNeverSatisfied', 'ReservationDeleted', 'FailedJobPrologue'],
]);

export type Phase =
  /** In the queue. */
  | 'pending'
  /** In the queue, and will stay there. */
  | 'hopeless'
  /** Its agent runs or starts. */
  | 'running'
  /** It has an agent that gets no new work: it is ending, or Slurm has suspended it. */
  | 'leaving'
  | 'ended';

const isIn = ({ states }: Pick<SlurmJob, 'states'>, ...names: string[]) =>
  states.some((state) => names.includes(state));

export function phaseOf(job: SlurmJob): Phase {
  if (isIn(job, 'COMPLETING', 'STAGE_OUT', 'SIGNALING', 'SUSPENDED', 'STOPPED')) return 'leaving';
  if (isIn(job, 'PENDING', 'REQUEUED', 'REQUEUE_FED', 'REQUEUE_HOLD', 'SPECIAL_EXIT', 'RESV_DEL_HOLD'))
    return HOPELESS.has(job.reason) || isIn(job, 'REQUEUE_HOLD', 'SPECIAL_EXIT', 'RESV_DEL_HOLD')
      ? 'hopeless'
      : 'pending';
  if (Object.keys(CAUSES).some((state) => isIn(job, state))) return 'ended';
  // RUNNING, CONFIGURING, RESIZING. Slurm reports a preemption before the end of its grace period.
  return job.preempted_at > 0 ? 'leaving' : 'running';
}

/** Returns the cause of the end by the states of an ended job. */
export function causeOf({ states }: Pick<SlurmJob, 'states'>): EndCause {
  return states.map((state) => CAUSES[state]).find((cause) => cause !== undefined) ?? 'unknown';
}
