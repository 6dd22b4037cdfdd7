/**
 * Forwards one job to its run in a tracker.
 *
 * Each step is logged once: steps are logged in order, and a step up to the newest one that is known to be logged is
 * left out. The state is saved after each request; what is unknown after an interruption, the tracker tells, or a
 * repeated request has no further effect.
 */
import type { Job, JobMetric, StreamEntry } from '../../contracts/index.js';
import { Check, type Static, Type } from '../../platform/schema.js';
import type { ForwardEvent, JobStore } from '../../state/index.js';
import { type EndedJob, hasEnded } from './values.js';

/** Items per read of the store. */
const ITEMS = 100;
/** Reads per round; then other jobs are due. */
const READS = 10;

const RunState = Type.Object({
  run_id: Type.Union([Type.String(), Type.Null()]),
  /** Newest step that is logged. */
  step: Type.Integer(),
  /** Position in the job's stream up to which its metrics are logged. */
  position: Type.Union([Type.String(), Type.Null()]),
  /** The run may have a final status. */
  has_ended: Type.Boolean(),
  /** State that only the tracker's own code reads; JSON. */
  own: Type.Unsafe<unknown>({}),
});
export type RunState = Static<typeof RunState>;
const states = new Check(RunState);

const NEW: RunState = { run_id: null, step: 0, position: null, has_ended: false, own: null };

/** @param saved of an earlier round, or null */
export function runState(saved: unknown): RunState {
  return states.fits(saved) ? saved : NEW;
}

export interface BegunRun {
  run_id: string;
  /** Newest step that the run has; 0 if it has none. */
  step: number;
  own: unknown;
  /** Further fields of the event `integration.started`. */
  details: Record<string, string>;
}

/** A run with an id. */
export type KnownRun = RunState & { run_id: string };

export interface LogRequest {
  job: Job;
  run: KnownRun;
  /** Metrics of increasing steps, all above `run.step`. */
  items: readonly JobMetric[];
  /** Values of one request. A step that has more is logged all the same. */
  limit: number;
}

/** The run of one integration in its tracker. All methods throw `TrackerError`. */
export interface TrackerRun {
  /** Values that one request may have. */
  readonly maxValues: number;
  /** Finds the run, or creates it. */
  begin(job: Job): Promise<BegunRun>;
  /** Prepares a run that has ended for further metrics. @returns `own` */
  reopen(job: Job, run: KnownRun): Promise<unknown>;
  /**
   * Newest step that the run has. It is asked when the effect of the last request is unknown; absent if a repeated
   * request has no effect.
   */
  newestStep?(run: KnownRun): Promise<number>;
  /** Logs metrics; yields after each request that completes a step. */
  log(request: LogRequest): AsyncIterable<Pick<RunState, 'step' | 'own'>>;
  /** Marks the run as ended. */
  finish(job: EndedJob, run: KnownRun): Promise<void>;
  /** Tells that a run without news goes on. Absent if the tracker does not need it. */
  beat?(run: KnownRun): Promise<void>;
}

interface RunRound {
  job_id: string;
  index: number;
  /** Type of the integration. */
  type: string;
  state: RunState;
  /** It is unknown whether the last request of the round before had an effect. */
  uncertain: boolean;
  /** Values of one request. */
  limit: number;
}

interface RunDeps {
  store: Pick<JobStore, 'getJob' | 'readStream'>;
  tracker: TrackerRun;
  /**
   * Saves the state.
   * @throws when another process forwards the job
   */
  save(state: RunState, event?: ForwardEvent): Promise<void>;
}

/** `ended`: nothing will follow; `idle`: everything was forwarded; `more`: there is more. */
export interface RoundResult {
  end: 'ended' | 'idle' | 'more';
  state: RunState;
}

/** @throws TrackerError; errors of the job store */
export async function forwardRun(round: RunRound, deps: RunDeps): Promise<RoundResult> {
  const { store } = deps;
  let { state } = round;
  for (let reads = 0; reads < READS; reads += 1) {
    // Before the metrics: those of a job that has ended are complete.
    const job = await store.getJob(round.job_id);
    if (job === null) return { end: 'ended', state };
    const read = await readMetrics(store, job.id, state.position);
    const isLast = read.items.length < ITEMS;
    const ended = isLast && hasEnded(job) ? job : null;
    if (read.items.length === 0 && ended === null) {
      if (isGoingOn(state)) await deps.tracker.beat?.(state);
      return { end: 'idle', state };
    }
    const uncertain = round.uncertain && reads === 0;
    const run = await prepare(job, { ...round, state, uncertain }, deps);
    const logged = await logMetrics(job, run, read.items, round.limit, deps);
    const next = { ...logged, position: read.position };
    if (ended !== null) return { end: 'ended', state: await finish(ended, next, deps) };
    state = next;
    if (isLast) return { end: 'idle', state };
  }
  return { end: 'more', state };
}

/** True for a run that has begun and not ended. */
export function isGoingOn(state: RunState): state is KnownRun {
  return state.run_id !== null && !state.has_ended;
}

/** Brings a run to the state in which metrics can follow. */
async function prepare(job: Job, round: RunRound, deps: RunDeps): Promise<KnownRun> {
  const { tracker } = deps;
  const { run_id, ...state } = round.state;
  if (run_id === null) return begin(job, round, deps);
  const run = { ...state, run_id };
  if (round.uncertain && tracker.newestStep) run.step = Math.max(run.step, await tracker.newestStep(run));
  // The job was retried.
  return run.has_ended ? { ...run, own: await tracker.reopen(job, run), has_ended: false } : run;
}

async function begin(
  job: Job,
  { index, type, state }: RunRound,
  { tracker, save }: RunDeps,
): Promise<KnownRun> {
  const { run_id, own, details, ...begun } = await tracker.begin(job);
  const run = { ...state, run_id, own, step: Math.max(state.step, begun.step) };
  await save(run, { type: 'integration.started', data: { integration: index, type, run_id, ...details } });
  return run;
}

async function logMetrics(
  job: Job,
  before: KnownRun,
  all: readonly JobMetric[],
  limit: number,
  { tracker, save }: RunDeps,
): Promise<KnownRun> {
  let run = before;
  const items = increasing(all, run.step);
  for await (const logged of tracker.log({ job, run, items, limit })) {
    run = { ...run, ...logged };
    await save(run);
  }
  return run;
}

/**
 * Metrics after a position. If the position was lost with the data of Redis, those from the beginning; steps that are
 * known are left out.
 */
async function readMetrics(store: RunDeps['store'], jobId: string, after: string | null) {
  const entries = await store
    .readStream(jobId, after, ITEMS, ['metric'])
    .catch((error: { code?: unknown }) => {
      if (error.code !== 'position_lost') throw error;
      return store.readStream(jobId, null, ITEMS, ['metric']);
    });
  return { items: entries.filter(isMetric), position: entries.at(-1)?.position ?? after };
}

async function finish(job: EndedJob, before: KnownRun, { tracker, save }: RunDeps): Promise<RunState> {
  const run = { ...before, has_ended: true };
  // First: the job may be retried meanwhile.
  await save(run);
  await tracker.finish(job, run);
  return run;
}

/**
 * The items whose steps are above all before. A job that continues from a checkpoint repeats steps, with the same
 * losses.
 */
function increasing(items: readonly JobMetric[], after: number): JobMetric[] {
  let last = after;
  return items.filter(({ step }) => {
    if (step <= last) return false;
    last = step;
    return true;
  });
}

function isMetric(entry: StreamEntry): entry is JobMetric {
  return entry.kind === 'metric';
}
