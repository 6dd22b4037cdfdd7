/** An MLflow server for tests, in memory: the part of the REST API that forwarding uses, with the limits of MLflow. */
import type { MlflowBatch, MlflowMetric, MlflowText } from '../mlflow-client.js';
import { Refusal, type SeenRun, type TrackerRequest, type TrackerStore } from './server.js';

interface StoredRun {
  run_id: string;
  experiment_id: string;
  run_name: string;
  status: SeenRun['status'];
  start_time: number;
  end_time: number | null;
  metrics: MlflowMetric[];
  params: Map<string, string>;
  tags: Map<string, string>;
}

const NAME = /^[/\w.\- ]{1,250}$/;

export class MlflowStore implements TrackerStore {
  readonly experiments = new Map<string, string>();
  readonly runs: StoredRun[] = [];

  seen(): SeenRun[] {
    return this.runs.map(({ status, metrics, tags }) => ({
      status,
      steps: metrics.filter(({ key }) => key === 'loss').map(({ step }) => step),
      step: Number(tags.get('zerofleet.step') ?? 0),
    }));
  }

  nameOf({ path }: TrackerRequest): string {
    return path.replace(/^api\/2\.0\/mlflow\//, '');
  }

  errorBody(errorCode: string): object {
    return { error_code: errorCode, message: 'as the test asked' };
  }

  handle(request: TrackerRequest): object {
    const { query, body } = request;
    switch (this.nameOf(request)) {
      case 'experiments/get-by-name': {
        const experimentId = this.experiments.get(query.get('experiment_name') ?? '');
        if (experimentId === undefined) throw new Refusal(404, 'RESOURCE_DOES_NOT_EXIST');
        return { experiment: { experiment_id: experimentId } };
      }
      case 'experiments/create': {
        const name = String(body.name);
        if (this.experiments.has(name)) throw new Refusal(400, 'RESOURCE_ALREADY_EXISTS');
        this.experiments.set(name, String(this.experiments.size + 1));
        return { experiment_id: this.experiments.get(name) };
      }
      case 'runs/search': {
        const [, key = '', value] = /^tags\.`([^`]+)` = '([^']*)'$/.exec(String(body.filter)) ?? [];
        const [experiment] = body.experiment_ids as string[];
        const found = this.runs.filter(
          (run) => run.experiment_id === experiment && run.tags.get(key) === value,
        );
        return found.length === 0 ? {} : { runs: found.map(shown) };
      }
      case 'runs/create':
        return { run: shown(this.create(body as unknown as NewRun)) };
      case 'runs/get':
        return { run: shown(this.runOf(query.get('run_id'))) };
      case 'runs/log-batch':
        log(this.runOf(body.run_id), body as MlflowBatch);
        return {};
      case 'runs/update':
        Object.assign(this.runOf(body.run_id), body);
        return { run_info: {} };
      default:
        throw new Refusal(404, 'ENDPOINT_NOT_FOUND');
    }
  }

  private create({ tags = [], ...fields }: NewRun): StoredRun {
    const run: StoredRun = {
      ...fields,
      run_id: `run${this.runs.length}`,
      status: 'RUNNING',
      end_time: null,
      metrics: [],
      params: new Map(),
      tags: new Map(tags.map(({ key, value }) => [key, value])),
    };
    this.runs.push(run);
    return run;
  }

  private runOf(id: unknown): StoredRun {
    const run = this.runs.find(({ run_id }) => run_id === id);
    if (!run) throw new Refusal(404, 'RESOURCE_DOES_NOT_EXIST');
    return run;
  }
}

interface NewRun {
  experiment_id: string;
  run_name: string;
  start_time: number;
  tags?: MlflowText[];
}

/** As `log_batch` of MLflow: the limits of mlflow/utils/validation.py, and params that never change. */
function log(run: StoredRun, { metrics = [], params = [], tags = [] }: MlflowBatch): void {
  const isTooLong = metrics.length > 1000 || params.length > 100 || tags.length > 100;
  const isNamed = [...metrics, ...params, ...tags].every(({ key }) => NAME.test(key));
  const isValid = metrics.every(
    ({ value, timestamp, step }) =>
      Number.isFinite(value) && Number.isInteger(timestamp) && Number.isInteger(step),
  );
  const hasChanged = params.some(({ key, value }) => (run.params.get(key) ?? value) !== value);
  const isShort = params.every(({ value }) => value !== '' && value.length <= 500);
  if (isTooLong || !isNamed || !isValid || hasChanged || !isShort)
    throw new Refusal(400, 'INVALID_PARAMETER_VALUE');
  run.metrics.push(...metrics);
  for (const { key, value } of params) run.params.set(key, value);
  for (const { key, value } of tags) run.tags.set(key, value);
}

function shown({ run_id, tags }: StoredRun): object {
  return { info: { run_id }, data: { tags: [...tags].map(([key, value]) => ({ key, value })) } };
}
