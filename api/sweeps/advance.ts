/**
 * Progress of a sweep, as a pure function of its record and of what its jobs have reached. It compares evaluations at
 * fixed steps, whose losses have the same bits on any number of ranks. So neither the order of the runs nor an
 * interruption changes which runs continue.
 *
 * A task is a change of a job that the record asks for; the runner makes it and removes the task.
 */

import { gainOf } from '../../contracts/evaluation-metrics.js';
import { isFinal, type Job, type JobState, type Sweep, type SweepRun } from '../../contracts/index.js';
import type { StoredSweep, SweepTask } from '../../state/index.js';

/** Progress and results of a job. */
export interface RunView {
  state: JobState;
  /** Rung for which it trained when it was read. */
  rung: number;
  step: number;
  failure: Job['failure'];
  /** Evaluation at the step of the rung for which it trains; undefined before it. */
  atRung: number | null | undefined;
  /** Evaluation with which it ended; undefined before the end. */
  atEnd: number | null | undefined;
}

/** Views by job; null for a deleted one, absent for a job that was not read. */
export type Views = ReadonlyMap<string, RunView | null>;

type Tasks = Record<string, SweepTask>;

const ENDED: readonly Sweep['state'][] = ['succeeded', 'failed', 'cancelled'];
const UNFINISHED: readonly SweepRun['state'][] = ['waiting', 'running', 'held'];

export const hasEnded = ({ state }: Pick<Sweep, 'state'>) => ENDED.includes(state);
const isUnfinished = ({ state }: Pick<SweepRun, 'state'>) => UNFINISHED.includes(state);

/** @param at RFC 3339 */
export function advance(stored: StoredSweep, views: Views, at: string): StoredSweep {
  const { sweep } = stored;
  if (hasEnded(sweep)) return stored;
  const tasks: Tasks = { ...stored.tasks };
  let runs = sweep.runs.map((run) => observed(run, { sweep, views, tasks }));
  runs = decided(runs, sweep, tasks);
  if (sweep.state === 'running') runs = begun(runs, sweep, tasks);
  const best = bestOf(runs, sweep);
  const isOver = !runs.some(isUnfinished);
  const state = isOver ? (best === null ? 'failed' : 'succeeded') : sweep.state;
  return {
    ...stored,
    sweep: { ...sweep, runs, best: best?.job_id ?? null, state, ended_at: isOver ? at : null },
    tasks,
  };
}

/** Requests of users; each changes nothing in the state that it leads to. */
export function pausedSweep(stored: StoredSweep): StoredSweep {
  return { ...stored, sweep: { ...stored.sweep, state: 'paused' } };
}

export function resumedSweep(stored: StoredSweep): StoredSweep {
  const { sweep, tasks } = stored;
  if (sweep.state !== 'paused') return stored;
  const trained = sweep.runs.filter(({ state, job_id }) => state === 'running' && tasks[job_id] !== 'create');
  const resumed = Object.fromEntries(trained.map(({ job_id }) => [job_id, 'resume' as const]));
  return { ...stored, sweep: { ...sweep, state: 'running' }, tasks: { ...tasks, ...resumed } };
}

export function cancelledSweep(stored: StoredSweep, at: string): StoredSweep {
  const { sweep } = stored;
  if (hasEnded(sweep)) return stored;
  const tasks: Tasks = { ...stored.tasks };
  const runs = sweep.runs.map((run) => {
    if (!isUnfinished(run)) return run;
    if (run.state !== 'waiting' || run.rung > 0) tasks[run.job_id] = 'cancel';
    return { ...run, state: 'cancelled' as const };
  });
  return { ...stored, sweep: { ...sweep, runs, state: 'cancelled', problem: null, ended_at: at }, tasks };
}

/** A run after a look at its job. */
function observed(
  run: SweepRun,
  { sweep, views, tasks }: { sweep: Sweep; views: Views; tasks: Tasks },
): SweepRun {
  if (run.state !== 'running' || tasks[run.job_id] === 'create') return run;
  const view = views.get(run.job_id);
  if (view === null) return { ...run, state: 'cancelled' };
  // Another server has moved the run on since its job was read.
  if (view?.rung !== run.rung) return run;
  const isLast = run.rung === sweep.rungs.length - 1;
  const step = sweep.rungs[run.rung]?.step ?? view.step;
  if (isFinal(view.state)) return ended(run, view, { isLast, step });
  if (!isLast && view.atRung !== undefined) {
    tasks[run.job_id] = 'pause';
    return { ...withValue(run, step, view.atRung), state: 'held' };
  }
  const isAtWork = view.state !== 'paused' && view.state !== 'pausing';
  if (sweep.state === 'paused' && isAtWork && tasks[run.job_id] === undefined) tasks[run.job_id] = 'pause';
  return run;
}

/** A run whose job has ended; before the last rung a job that succeeded takes part in the comparisons to come. */
function ended(run: SweepRun, view: RunView, { isLast, step }: { isLast: boolean; step: number }): SweepRun {
  const { state, failure } = view;
  if (state !== 'succeeded') {
    const { code, message } = failure ?? {};
    const why = code === undefined || message === undefined ? null : { code, message };
    return { ...run, state: state === 'failed' ? 'failed' : 'cancelled', failure: why };
  }
  if (isLast) return { ...withValue(run, view.step, view.atEnd ?? null), state: 'succeeded' };
  const reached =
    view.atRung === undefined ? ([view.step, view.atEnd ?? null] as const) : ([step, view.atRung] as const);
  return { ...withValue(run, ...reached), state: 'held' };
}

function withValue(run: SweepRun, step: number, value: number | null): SweepRun {
  return { ...run, evaluations: [...run.evaluations, { step, value }] };
}

/** Decides on a rung that all runs have reached: the best continue, the others end. */
function decided(runs: readonly SweepRun[], sweep: Sweep, tasks: Tasks): SweepRun[] {
  const rung = Math.min(...runs.filter(isUnfinished).map((run) => run.rung));
  const next = sweep.rungs[rung + 1];
  const here = runs.filter((run) => isUnfinished(run) && run.rung === rung);
  if (next === undefined || here.some(({ state }) => state !== 'held')) return [...runs];
  const continued = new Set(ranked(here, sweep).slice(0, next.runs));
  return runs.map((run) => {
    if (!here.includes(run)) return run;
    if (continued.has(run)) return { ...run, state: 'waiting', rung: rung + 1 };
    tasks[run.job_id] = 'cancel';
    return { ...run, state: 'stopped' };
  });
}

/** Runs with a value at their last rung, best first; of equal values the first run. */
function ranked(runs: readonly SweepRun[], { metric }: Pick<Sweep, 'metric'>): SweepRun[] {
  const value = (run: SweepRun) => run.evaluations.at(-1)?.value ?? Number.NaN;
  return runs.filter((run) => Number.isFinite(value(run))).sort((a, b) => gainOf(metric, value(b), value(a)));
}

/** Begins waiting runs while fewer than `max_concurrent` are at work. */
function begun(runs: readonly SweepRun[], { max_concurrent }: Sweep, tasks: Tasks): SweepRun[] {
  let free = max_concurrent - runs.filter(({ state }) => state === 'running').length;
  return runs.map((run) => {
    if (run.state !== 'waiting' || free <= 0) return run;
    free -= 1;
    tasks[run.job_id] = run.rung === 0 ? 'create' : 'resume';
    return { ...run, state: 'running' };
  });
}

/** The best run of those that came furthest. */
function bestOf(runs: readonly SweepRun[], sweep: Pick<Sweep, 'metric'>): SweepRun | null {
  const sound = runs.filter(({ state }) => state !== 'failed' && state !== 'cancelled');
  const furthest = Math.max(0, ...ranked(sound, sweep).map(({ evaluations }) => evaluations.length));
  return (
    ranked(
      sound.filter(({ evaluations }) => evaluations.length === furthest),
      sweep,
    )[0] ?? null
  );
}
