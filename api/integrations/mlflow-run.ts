/**
 * Forwards one job to its run in MLflow.
 *
 * Each step is logged once: steps are logged in order, each batch sets the tag `zerofleet.step`, and a step up to the newest one that is
 * known to be logged is left out. After an interruption, when the result of the last batch is unknown, the tag tells it. The run is found
 * by its tag `zerofleet.integration`, so that not even a loss of the state begins a second one.
 */
import {
  type Integration,
  isFinal,
  type Job,
  type JobMetric,
  type StreamEntry,
} from '../../contracts/index.js';
import { Check, type Static, Type } from '../../platform/schema.js';
import type { ForwardEvent, JobStorePort } from '../../state/index.js';
import { MAX_PARAMS, type MlflowClient, type MlflowRun } from './mlflow-client.js';
import { batchesOf, finalTagsOf, identityOf, paramsOf, STEP_TAG, statusOf, tagsOf } from './mlflow-values.js';

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
  /** The run has its params. */
  has_params: Type.Boolean(),
  /** The run may have a final status. */
  has_ended: Type.Boolean(),
});
export type RunState = Static<typeof RunState>;
const states = new Check(RunState);

const NEW: RunState = { run_id: null, step: 0, position: null, has_params: false, has_ended: false };

/** @param saved of an earlier round, or null */
export function runState(saved: unknown): RunState {
  return states.fits(saved) ? saved : NEW;
}

export interface RunRound {
  job_id: string;
  index: number;
  integration: Integration;
  state: RunState;
  /** It is unknown whether the last request of the round before had an effect. */
  uncertain: boolean;
  /** Metrics of one request. */
  limit: number;
}

export interface RunDeps {
  store: Pick<JobStorePort, 'getJob' | 'readStream'>;
  client: MlflowClient;
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

/** @throws MlflowError; errors of the job store */
export async function forwardRun(round: RunRound, deps: RunDeps): Promise<RoundResult> {
  const { store } = deps;
  let { state } = round;
  for (let reads = 0; reads < READS; reads += 1) {
    // Before the metrics: those of a job that has ended are complete.
    const job = await store.getJob(round.job_id);
    if (job === null) return { end: 'ended', state };
    const read = await readMetrics(store, job.id, state.position);
    const ends = isFinal(job.state) && read.items.length < ITEMS;
    if (read.items.length === 0 && !ends) return { end: 'idle', state };
    if (state.run_id === null) state = await begin(job, round, deps, state);
    const run_id = state.run_id ?? '';
    state = await prepare(job, run_id, { ...round, uncertain: round.uncertain && reads === 0 }, deps, state);
    state = await logMetrics(run_id, read.items, deps, { state, limit: round.limit });
    state = { ...state, position: read.position };
    if (ends) return { end: 'ended', state: await finish(job, run_id, deps, state) };
    if (read.items.length < ITEMS) return { end: 'idle', state };
  }
  return { end: 'more', state };
}

async function logMetrics(
  run_id: string,
  items: readonly JobMetric[],
  { client, save }: RunDeps,
  { state: before, limit }: { state: RunState; limit: number },
): Promise<RunState> {
  let state = before;
  for (const { metrics, step } of batchesOf(increasing(items, before.step), limit)) {
    const tags = step === null ? [] : [{ key: STEP_TAG, value: String(step) }];
    await client.logBatch(run_id, { metrics, tags });
    if (step === null) continue;
    state = { ...state, step };
    await save(state);
  }
  return state;
}

/** Metrics after a position. If the position was lost with the data of Redis, those from the beginning; steps that are known are left out. */
async function readMetrics(store: RunDeps['store'], jobId: string, after: string | null) {
  const entries = await store
    .readStream(jobId, after, ITEMS, ['metric'])
    .catch((error: { code?: unknown }) => {
      if (error.code !== 'position_lost') throw error;
      return store.readStream(jobId, null, ITEMS, ['metric']);
    });
  return { items: entries.filter(isMetric), position: entries.at(-1)?.position ?? after };
}

/** Finds the run, or creates it. */
async function begin(job: Job, round: RunRound, deps: RunDeps, state: RunState): Promise<RunState> {
  const { client, save } = deps;
  const { index, integration } = round;
  const { type, experiment, run_name = job.name || job.id } = integration;
  const experiment_id = await client.experiment(experiment);
  const found = await client.findRun(experiment_id, identityOf(job.id, index));
  const run =
    found ??
    (await client.createRun({
      experiment_id,
      run_name,
      start_time: Date.parse(job.created_at),
      // Versions before 2.0 take the name from the tag.
      tags: [...tagsOf(job, index), { key: 'mlflow.runName', value: run_name }],
    }));
  const { run_id } = run.info;
  const begun = { ...state, run_id, step: Math.max(state.step, stepOf(run)) };
  await save(begun, {
    type: 'integration.started',
    data: { integration: index, type, experiment_id, run_id },
  });
  return begun;
}

/** Brings a run to the state in which metrics can follow. */
async function prepare(
  job: Job,
  run_id: string,
  { uncertain }: Pick<RunRound, 'uncertain'>,
  { client }: RunDeps,
  state: RunState,
): Promise<RunState> {
  let { step } = state;
  if (uncertain) step = Math.max(step, stepOf(await client.getRun(run_id)));
  if (!state.has_params) {
    const params = paramsOf(job.spec);
    for (let at = 0; at < params.length; at += MAX_PARAMS)
      await client.logBatch(run_id, { params: params.slice(at, at + MAX_PARAMS) });
  }
  // The job was retried.
  if (state.has_ended) await client.updateRun(run_id, { status: 'RUNNING' });
  return { ...state, step, has_params: true, has_ended: false };
}

async function finish(
  job: Job,
  run_id: string,
  { client, save }: RunDeps,
  before: RunState,
): Promise<RunState> {
  if (!isFinal(job.state)) return before;
  const state = { ...before, has_ended: true };
  // First: the job may be retried meanwhile.
  await save(state);
  await client.logBatch(run_id, { tags: finalTagsOf(job) });
  await client.updateRun(run_id, { status: statusOf(job.state), end_time: Date.parse(job.updated_at) });
  return state;
}

/** The items whose steps are above all before. A job that continues from a checkpoint repeats steps, with the same losses. */
function increasing(items: readonly JobMetric[], after: number): JobMetric[] {
  let last = after;
  return items.filter(({ step }) => {
    if (step <= last) return false;
    last = step;
    return true;
  });
}

function stepOf({ data }: MlflowRun): number {
  const step = Number(data?.tags?.find(({ key }) => key === STEP_TAG)?.value ?? 0);
  return Number.isSafeInteger(step) ? step : 0;
}

function isMetric(entry: StreamEntry): entry is JobMetric {
  return entry.kind === 'metric';
}
