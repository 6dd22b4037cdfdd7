/** Jobs in the output of `squeue --json` and `sacct --json`, of Slurm 22.05 and later. */
import { Check, type Static, Type } from '../../platform/schema.js';

/** A plain number until Slurm 23.02, afterwards an object. */
const Count = Type.Union([
  Type.Number(),
  Type.Null(),
  Type.Object({ set: Type.Boolean(), infinite: Type.Boolean(), number: Type.Number() }),
]);
/** One name until Slurm 23.02, afterwards the base state and its flags. */
const States = Type.Union([Type.String(), Type.Array(Type.String())]);

const QueuedJob = Type.Object({
  job_id: Type.Integer(),
  name: Type.String(),
  user_name: Type.String(),
  job_state: States,
  state_reason: Type.String(),
  start_time: Count,
  end_time: Count,
  preempt_time: Count,
  restart_cnt: Type.Integer(),
});

const RecordedJob = Type.Object({
  job_id: Type.Integer(),
  state: Type.Object({ current: States, reason: Type.String() }),
});

const queuedJob = new Check(QueuedJob);
const recordedJob = new Check(RecordedJob);
const output = new Check(Type.Object({ jobs: Type.Array(Type.Unsafe<{ name?: unknown }>()) }));

/** A job of the queue. Slurm lists an ended one for its `MinJobAge`, by default five minutes. */
export interface SlurmJob {
  id: number;
  name: string;
  user: string;
  /** Base state and flags, as RUNNING or PREEMPTED and COMPLETING. */
  states: readonly string[];
  /** Slurm's reason for the state, as `Resources` or `NodeDown`; `None` without one. */
  reason: string;
  /** Unix times in ms; 0: unknown. The end is that of the time limit until the job ends. */
  starts_at: number;
  ends_at: number;
  /** Time of the notice of a preemption; 0: none. */
  preempted_at: number;
  restarts: number;
}

/**
 * Parses the output of `squeue --json`, which Slurm 22.05 does not filter.
 * @returns jobs whose name passes
 * @throws Error for other output
 */
export function parseQueue(text: string, isOwn: (name: string) => boolean): SlurmJob[] {
  // Jobs of other users need not fit the schema.
  const own = jobsIn('squeue', text).filter(({ name }) => typeof name === 'string' && isOwn(name));
  return own.map((job) => {
    if (!queuedJob.fits(job)) throw new Error(`output of squeue: a job's ${queuedJob.problems()[0]}`);
    return jobOf(job);
  });
}

/** Last state of a job in the accounting. */
export interface JobRecord {
  id: number;
  states: readonly string[];
  reason: string;
}

/** Parses the output of `sacct --json`. @throws Error for other output */
export function parseRecords(text: string): JobRecord[] {
  return jobsIn('sacct', text).map((job) => {
    if (!recordedJob.fits(job)) throw new Error(`output of sacct: a job's ${recordedJob.problems()[0]}`);
    const { current, reason } = job.state;
    return { id: job.job_id, states: statesOf(current), reason };
  });
}

function jobsIn(command: string, text: string): { name?: unknown }[] {
  const value: unknown = JSON.parse(text);
  if (!output.fits(value)) throw new Error(`output of ${command}: ${output.problems()[0]}`);
  return value.jobs;
}

const statesOf = (states: Static<typeof States>) => (typeof states === 'string' ? [states] : states);

function msOf(count: Static<typeof Count>): number {
  if (count === null) return 0;
  const seconds = typeof count === 'number' ? count : count.set && !count.infinite ? count.number : 0;
  return seconds * 1000;
}

function jobOf(job: Static<typeof QueuedJob>): SlurmJob {
  return {
    id: job.job_id,
    name: job.name,
    user: job.user_name,
    states: statesOf(job.job_state),
    reason: job.state_reason,
    starts_at: msOf(job.start_time),
    ends_at: msOf(job.end_time),
    preempted_at: msOf(job.preempt_time),
    restarts: job.restart_cnt,
  };
}
