/** Changes of jobs that a sweep asks for. */
import { isDeepStrictEqual } from 'node:util';
import { isFinal, type Job, type Sweep, sweepRunsKey, ZerofleetError } from '../../contracts/index.js';
import { getIfExists } from '../../platform/object-store/common/get-if-exists.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import {
  type JobStore,
  keepDesired,
  parseSweepRuns,
  type StoredSweep,
  type SweepTask,
} from '../../state/index.js';
import { queueAgain } from '../jobs/changes/control-job.js';
import { recordJob } from '../jobs/changes/record-job.js';

export interface Stores {
  store: JobStore;
  objects: ObjectStore;
}

/** Jobs that were read; null for a deleted one. */
export type Jobs = ReadonlyMap<string, Job | null>;

/** Outcome of a task. A task that is not over is tried again. */
interface Outcome {
  task: SweepTask;
  isOver: boolean;
  error: Sweep['problem'];
}

/** The job has changed since it was read. */
const CHANGED: readonly string[] = ['version_mismatch', 'invalid_state', 'job_final'];
/** A creation that another server had begun may still end within this time after the sweep was cancelled. */
const CREATION_MS = 10_000;

/**
 * Performs the tasks of a sweep and removes those that are over from its record. A refused creation fails its run; a
 * quota is the problem of the sweep until it allows the creation.
 * @param jobs a task of another job was added since they were read, and is left for the next look
 */
export async function performTasks(stores: Stores, stored: StoredSweep, jobs: Jobs): Promise<StoredSweep> {
  const { objects } = stores;
  const { id, sweep, tasks } = stored;
  const runs = Object.values(tasks).includes('create') ? await readRuns(objects, id) : [];
  const outcomes = new Map<string, Outcome>();
  for (const [jobId, task] of Object.entries(tasks)) {
    const job = jobs.get(jobId);
    if (task !== 'create' && job === undefined) continue;
    const change = () =>
      task === 'create' ? create(stores, runs, jobId) : act(stores, task, job ?? null, sweep);
    const outcome = await outcomeOf(task, change);
    outcomes.set(jobId, outcome);
    // What refuses one job for now, such as a quota, refuses the others as well.
    if (!outcome.isOver && outcome.error !== null) break;
  }
  const note = (before: StoredSweep) => noted(before, outcomes);
  if (isDeepStrictEqual(note(stored), stored)) return stored;
  return (await stores.store.updateSweep(id, note)) ?? stored;
}

async function outcomeOf(task: SweepTask, change: () => Promise<boolean>): Promise<Outcome> {
  try {
    return { task, isOver: await change(), error: null };
  } catch (error) {
    if (!(error instanceof ZerofleetError)) throw error;
    if (CHANGED.includes(error.code)) return { task, isOver: false, error: null };
    const { code, message, kind } = error;
    const isForNow = kind.category === 'limit' || kind.retryable || task !== 'create';
    return { task, isOver: !isForNow, error: { code, message } };
  }
}

function noted(before: StoredSweep, outcomes: ReadonlyMap<string, Outcome>): StoredSweep {
  const overOf = (jobId: string) => {
    const outcome = outcomes.get(jobId);
    return outcome?.isOver && outcome.task === before.tasks[jobId] ? outcome : null;
  };
  const left = Object.entries(before.tasks).filter(([jobId]) => overOf(jobId) === null);
  const runs = before.sweep.runs.map((run) => {
    const failure = overOf(run.job_id)?.error ?? null;
    return failure === null ? run : { ...run, state: 'failed' as const, failure };
  });
  const problem =
    [...outcomes.values()].find(({ isOver, error }) => !isOver && error !== null)?.error ?? null;
  return { ...before, sweep: { ...before.sweep, runs, problem }, tasks: Object.fromEntries(left) };
}

async function readRuns(objects: ObjectStore, id: string) {
  const bytes = await getIfExists(objects, sweepRunsKey(id));
  return bytes === null ? [] : parseSweepRuns(bytes).runs;
}

async function create(stores: Stores, runs: Awaited<ReturnType<typeof readRuns>>, id: string): Promise<true> {
  const run = runs.find(({ job_id }) => job_id === id);
  if (run === undefined) throw new ZerofleetError('document_invalid', `the document of ${id} is missing`);
  const { spec, given } = run;
  await recordJob(stores, { id, spec, given });
  return true;
}

/** @param job null for a deleted one. @returns false to try again */
async function act(
  stores: Stores,
  task: Exclude<SweepTask, 'create'>,
  job: Job | null,
  { ended_at }: Sweep,
): Promise<boolean> {
  const { store } = stores;
  if (job === null) return ended_at === null || Date.now() - Date.parse(ended_at) > CREATION_MS;
  if (isFinal(job.state)) return true;
  const condition = { if_versions: [job.state_version] };
  if (task === 'cancel') await keepDesired(stores, await store.requestCancel(job.id, condition));
  else if (task === 'pause') await keepDesired(stores, await store.requestPause(job.id, condition));
  else if (job.state === 'pausing') return false;
  else if (job.state === 'paused')
    await queueAgain(stores, job, 'paused', () => store.resumeJob(job.id, condition));
  // Another server may have paused the job since it was read.
  else return (await store.getJob(job.id))?.state_version === job.state_version;
  return true;
}
