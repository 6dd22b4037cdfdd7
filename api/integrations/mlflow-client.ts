/** MLflow's REST API 2.0, as far as forwarding needs it: https://mlflow.org/docs/latest/rest-api.html */
import { Check, type Static, type TSchema, Type } from '../../platform/schema.js';
import { ERROR_CODE, Identifier, type TrackerClient, TrackerError } from './tracker-client.js';

/** Limits of one `runs/log-batch`. */
export const MAX_METRICS = 900;
export const MAX_PARAMS = 100;
/** Characters of a param's value that every version of MLflow accepts. */
export const MAX_PARAM_LENGTH = 500;

export interface MlflowMetric {
  key: string;
  /** Finite: MLflow's pages cannot show another one. */
  value: number;
  /** Unix time in ms. */
  timestamp: number;
  step: number;
}

export interface MlflowText {
  key: string;
  value: string;
}

export interface MlflowBatch {
  metrics?: readonly MlflowMetric[];
  params?: readonly MlflowText[];
  tags?: readonly MlflowText[];
}

export type MlflowStatus = 'RUNNING' | 'FINISHED' | 'FAILED' | 'KILLED';

const Run = Type.Object({
  info: Type.Object({ run_id: Identifier }),
  data: Type.Optional(
    Type.Object({
      tags: Type.Optional(Type.Array(Type.Object({ key: Type.String(), value: Type.String() }))),
    }),
  ),
});
export type MlflowRun = Static<typeof Run>;
const answers = {
  experiment: new Check(Type.Object({ experiment: Type.Object({ experiment_id: Identifier }) })),
  created: new Check(Type.Object({ experiment_id: Identifier })),
  run: new Check(Type.Object({ run: Run })),
  runs: new Check(Type.Object({ runs: Type.Optional(Type.Array(Run)) })),
  any: new Check(Type.Object({})),
  error: new Check(Type.Object({ error_code: Type.String({ pattern: ERROR_CODE }) })),
};

/** Statuses of requests that would be refused again. */
const PERMANENT: ReadonlySet<number> = new Set([400, 409, 413, 422]);

export class MlflowClient {
  constructor(private readonly http: TrackerClient) {}

  /** Returns the id of an experiment, which is created if it does not exist. */
  async experiment(name: string): Promise<string> {
    const find = () =>
      this.call('GET', `experiments/get-by-name?${query({ experiment_name: name })}`, 'experiment');
    const found = await find().catch(unless('RESOURCE_DOES_NOT_EXIST'));
    if (found) return found.experiment.experiment_id;
    const created = await this.call('POST', 'experiments/create', 'created', { name }).catch(
      unless('RESOURCE_ALREADY_EXISTS'),
    );
    return created ? created.experiment_id : (await find()).experiment.experiment_id;
  }

  /** Returns the run of an experiment with this tag, or null. */
  async findRun(experimentId: string, { key, value }: MlflowText): Promise<MlflowRun | null> {
    const filter = `tags.\`${key}\` = '${value}'`;
    const body = { experiment_ids: [experimentId], filter, max_results: 1, run_view_type: 'ACTIVE_ONLY' };
    return (await this.call('POST', 'runs/search', 'runs', body)).runs?.[0] ?? null;
  }

  /** @param run `start_time` in ms */
  async createRun(run: {
    experiment_id: string;
    run_name: string;
    start_time: number;
    tags: readonly MlflowText[];
  }): Promise<MlflowRun> {
    return (await this.call('POST', 'runs/create', 'run', run)).run;
  }

  async getRun(runId: string): Promise<MlflowRun> {
    return (await this.call('GET', `runs/get?${query({ run_id: runId })}`, 'run')).run;
  }

  async logBatch(runId: string, batch: MlflowBatch): Promise<void> {
    await this.call('POST', 'runs/log-batch', 'any', { run_id: runId, ...batch });
  }

  /** @param change `end_time` in ms */
  async updateRun(runId: string, change: { status: MlflowStatus; end_time?: number }): Promise<void> {
    await this.call('POST', 'runs/update', 'any', { run_id: runId, ...change });
  }

  /** @throws TrackerError */
  private async call<K extends Exclude<keyof typeof answers, 'error'>>(
    method: 'GET' | 'POST',
    path: string,
    kind: K,
    body?: object,
  ): Promise<Answer<K>> {
    const { status, value } = await this.http.send(method, `api/2.0/mlflow/${path}`, body);
    if (status < 200 || status > 299) {
      const errorCode = answers.error.fits(value) ? value.error_code : null;
      const permanent = PERMANENT.has(status) || errorCode === 'RESOURCE_DOES_NOT_EXIST';
      throw new TrackerError('refused', { status, error_code: errorCode, permanent });
    }
    if (!answers[kind].fits(value)) throw new TrackerError('protocol_error');
    return value as Answer<K>;
  }
}

type Answer<K extends keyof typeof answers> =
  (typeof answers)[K] extends Check<infer S extends TSchema> ? Static<S> : never;

function unless(code: string): (error: unknown) => null {
  return (error) => {
    if (error instanceof TrackerError && error.answer.error_code === code) return null;
    throw error;
  };
}

function query(fields: Record<string, string>): string {
  return new URLSearchParams(fields).toString();
}
