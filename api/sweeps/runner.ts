/** Works on sweeps: looks at their jobs, decides, and changes the jobs. Several servers may do it concurrently. */
import { isDeepStrictEqual } from 'node:util';
import { figureOf } from '../../contracts/evaluation-metrics.js';
import { isFinal, type Job, type SweepRun } from '../../contracts/index.js';
import { deletedKey, desiredKey } from '../../formats/checkpoint/layout.js';
import type { Logger } from '../../platform/logging/logging.js';
import { Periodic } from '../../platform/process/periodic.js';
import { type JobStore, metricsBetween, type StoredSweep } from '../../state/index.js';
import { advance, hasEnded, type RunView, type Views } from './advance.js';
import { keepSweep } from './keep-sweep.js';
import { type Jobs, performTasks, type Stores } from './tasks.js';

const INTERVAL_MS = 1_000;

export function runSweeps(
  { store, objects, log }: Stores & { log: Logger },
  intervalMs = INTERVAL_MS,
): Periodic {
  const failed = (sweep: string | null, err: unknown) => log.warn({ err, sweep }, 'work on sweeps failed');
  const work = async (signal: AbortSignal) => {
    for (const stored of await store.activeSweeps()) {
      if (signal.aborted) return;
      await workOn({ store, objects }, stored).catch((error) => failed(stored.id, error));
    }
  };
  return new Periodic(work, intervalMs, (error) => failed(null, error));
}

/**
 * Reads the jobs before the record. If the record still has a task, the task was not begun when its job was read. The
 * change names that version of the job, so only one of several servers makes it.
 */
async function workOn(stores: Stores, { id, project, sweep, tasks }: StoredSweep): Promise<void> {
  const { store } = stores;
  const jobs = await jobsOf(
    stores,
    sweep.runs.filter((run) => needsUpdate(run, tasks)),
  );
  if (jobs === null) return;
  const views = await viewsOf(store, sweep, jobs);
  const at = new Date().toISOString();
  const before = await store.getSweep(project, id);
  if (before === null) return store.endSweep(id);
  const decide = (stored: StoredSweep) => advance(stored, views, at);
  const after = isDeepStrictEqual(decide(before), before) ? before : await store.updateSweep(id, decide);
  if (after === null) return;
  const noted = await performTasks(stores, after, jobs);
  if (!isDeepStrictEqual(noted, before)) await keepSweep(stores, noted);
  if (hasEnded(noted.sweep) && Object.keys(noted.tasks).length === 0) await store.endSweep(id);
}

function needsUpdate({ state, job_id }: SweepRun, tasks: StoredSweep['tasks']): boolean {
  // The job may be created while it is read, and then must not be taken for a deleted one.
  if (tasks[job_id] === 'create') return false;
  return state === 'running' || tasks[job_id] !== undefined;
}

/** Jobs of runs; null for a deleted one. Returns null while one is lost, so that nothing is decided without it. */
async function jobsOf({ store, objects }: Stores, runs: readonly SweepRun[]): Promise<Jobs | null> {
  const jobs = new Map<string, Job | null>();
  for (const { job_id: id } of runs) {
    const job = await store.getJob(id);
    jobs.set(id, job);
    if (
      job === null &&
      (await objects.head(desiredKey(id))) !== null &&
      (await objects.head(deletedKey(id))) === null
    )
      return null;
  }
  return jobs;
}

async function viewsOf(
  store: JobStore,
  { rungs, runs, metric }: StoredSweep['sweep'],
  jobs: Jobs,
): Promise<Views> {
  const views = new Map<string, RunView | null>();
  for (const { job_id, rung } of runs) {
    const job = jobs.get(job_id);
    if (job === undefined) continue;
    if (job === null) {
      views.set(job_id, null);
      continue;
    }
    const { state, failure, progress } = job;
    const step = rungs[rung]?.step ?? null;
    const atRung =
      step === null || progress.step < step ? undefined : await valueAt(store, job, metric, step);
    const atEnd = isFinal(state) ? await valueAtEnd(store, job, metric) : undefined;
    views.set(job_id, { state, failure, rung, step: progress.step, atRung, atEnd });
  }
  return views;
}

/** The evaluation after a step; of a repeated step all are equal. */
async function valueAt(store: JobStore, { id }: Job, metric: string, step: number) {
  for await (const { eval_losses } of metricsBetween(store, id, { from: step, to: step })) {
    const value = figureOf(eval_losses, metric);
    if (value !== undefined) return value;
  }
  return undefined;
}

/** With early stopping by the metric the best evaluation, whose checkpoint the job keeps. */
async function valueAtEnd(store: JobStore, job: Job, metric: string) {
  const { progress, spec } = job;
  const best = spec.train.early_stopping?.metric === metric ? progress.early_stopping?.best_eval_loss : null;
  return best ?? valueAt(store, job, metric, progress.step);
}
