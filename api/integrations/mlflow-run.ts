/**
 * The run of a job in MLflow. Each batch of metrics sets the tag `zerofleet.step`, which tells after an interruption
 * what was logged. The run is found by its tag `zerofleet.integration`, so that not even a loss of the state begins a
 * second one.
 */
import type { Integration, Job } from '../../contracts/index.js';
import { MAX_METRICS, MAX_PARAMS, MlflowClient, type MlflowRun as StoredRun } from './mlflow-client.js';
import {
  batchesOf,
  identityOf,
  NON_FINITE_TAG,
  paramsOf,
  STEP_TAG,
  statusOf,
  tagsOf,
} from './mlflow-values.js';
import type { BegunRun, KnownRun, LogRequest, TrackerRun } from './run.js';
import type { TrackerClient } from './tracker-client.js';
import { type EndedJob, outcomeOf, runNameOf } from './values.js';

export class MlflowRun implements TrackerRun {
  readonly maxValues = MAX_METRICS;
  private readonly client: MlflowClient;

  /** @param index of the integration in the document */
  constructor(
    http: TrackerClient,
    private readonly integration: Integration,
    private readonly index: number,
  ) {
    this.client = new MlflowClient(http);
  }

  async begin(job: Job): Promise<BegunRun> {
    const experimentId = await this.client.experiment(this.integration.experiment ?? '');
    const found = await this.client.findRun(experimentId, identityOf(job.id, this.index));
    const run = found ?? (await this.create(job, experimentId));
    const { run_id } = run.info;
    const params = paramsOf(job.spec);
    for (let at = 0; at < params.length; at += MAX_PARAMS)
      await this.client.logBatch(run_id, { params: params.slice(at, at + MAX_PARAMS) });
    return { run_id, step: stepOf(run), own: null, details: { experiment_id: experimentId } };
  }

  private create(job: Job, experimentId: string): Promise<StoredRun> {
    const runName = runNameOf(job, this.integration);
    return this.client.createRun({
      experiment_id: experimentId,
      run_name: runName,
      start_time: Date.parse(job.created_at),
      // Versions before 2.0 take the name from the tag.
      tags: [...tagsOf(job, this.index), { key: 'mlflow.runName', value: runName }],
    });
  }

  async reopen(_job: Job, { run_id }: KnownRun): Promise<null> {
    await this.client.updateRun(run_id, { status: 'RUNNING' });
    return null;
  }

  async newestStep({ run_id }: KnownRun): Promise<number> {
    return stepOf(await this.client.getRun(run_id));
  }

  async *log({ run, items, limit }: LogRequest) {
    for (const { metrics, step, nonFinite } of batchesOf(items, limit)) {
      const tags = [
        ...(step === null ? [] : [{ key: STEP_TAG, value: String(step) }]),
        ...(nonFinite === null ? [] : [{ key: NON_FINITE_TAG, value: nonFinite }]),
      ];
      await this.client.logBatch(run.run_id, { metrics, tags });
      if (step !== null) yield { step, own: null };
    }
  }

  async finish(job: EndedJob, { run_id }: KnownRun): Promise<void> {
    const tags = Object.entries(outcomeOf(job)).map(([key, value]) => ({ key, value }));
    await this.client.logBatch(run_id, { tags });
    await this.client.updateRun(run_id, {
      status: statusOf(job.state),
      end_time: Date.parse(job.updated_at),
    });
  }
}

function stepOf({ data }: StoredRun): number {
  const step = Number(data?.tags?.find(({ key }) => key === STEP_TAG)?.value ?? 0);
  return Number.isSafeInteger(step) ? step : 0;
}
