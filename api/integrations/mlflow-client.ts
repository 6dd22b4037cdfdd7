/** MLflow's REST API 2.0, as far as forwarding needs it: https://mlflow.org/docs/latest/rest-api.html */
import { PROGRAM_VERSION } from '../../platform/process/version.js';
import { Check, type Static, type TSchema, Type } from '../../platform/schema.js';
import type { AddressPolicy } from '../webhooks/addresses.js';
import { exchange, type PostFailure, type Resolve } from '../webhooks/post.js';
import type { Tracker } from './trackers.js';

/** Limits of one `runs/log-batch`; a server that is too slow for many metrics gets fewer. */
export const MAX_METRICS = 900;
export const FEWEST_METRICS = 50;
export const MAX_PARAMS = 100;
/** Characters of a param's value that every version of MLflow accepts. */
export const MAX_PARAM_LENGTH = 500;

/** A run's answer has its params, tags and the last value of each metric. */
const ANSWER_BYTES = 4 * 1024 * 1024;

export interface MlflowMetric {
  key: string;
  /** `NaN` for a value that is not finite, as protobuf writes it in JSON. */
  value: number | 'NaN';
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
  info: Type.Object({ run_id: Type.String() }),
  data: Type.Optional(
    Type.Object({
      tags: Type.Optional(Type.Array(Type.Object({ key: Type.String(), value: Type.String() }))),
    }),
  ),
});
export type MlflowRun = Static<typeof Run>;
const answers = {
  experiment: new Check(Type.Object({ experiment: Type.Object({ experiment_id: Type.String() }) })),
  created: new Check(Type.Object({ experiment_id: Type.String() })),
  run: new Check(Type.Object({ run: Run })),
  runs: new Check(Type.Object({ runs: Type.Optional(Type.Array(Run)) })),
  any: new Check(Type.Object({})),
  error: new Check(Type.Object({ error_code: Type.String({ pattern: '^[A-Z_]{1,64}$' }) })),
};

/** Statuses of requests that would be refused again. */
const PERMANENT: ReadonlySet<number> = new Set([400, 409, 413, 422]);

/** A failed request. It has nothing of the answer's text, which may repeat what was sent. */
export class MlflowError extends Error {
  constructor(
    readonly code: PostFailure | 'refused' | 'server_not_configured',
    /** Status of the answer, and MLflow's own code if it is an answer of MLflow. */
    readonly answer: { status: number | null; error_code: string | null } = {
      status: null,
      error_code: null,
    },
  ) {
    const { status, error_code } = answer;
    super(
      [code, ...(status === null ? [] : [String(status)]), ...(error_code ? [error_code] : [])].join(' '),
    );
  }

  /** A repetition would fail as well. Another API process may already have a server that this one lacks. */
  get isPermanent(): boolean {
    const { status, error_code } = this.answer;
    if (status !== null) return PERMANENT.has(status) || error_code === 'RESOURCE_DOES_NOT_EXIST';
    return this.code === 'address_refused';
  }
}

export interface MlflowOptions {
  policy: AddressPolicy;
  resolve: Resolve;
  timeoutMs: number;
  signal: AbortSignal;
}

export class MlflowClient {
  constructor(
    private readonly tracker: Tracker,
    private readonly options: MlflowOptions,
  ) {}

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
  async findRun(experiment_id: string, { key, value }: MlflowText): Promise<MlflowRun | null> {
    const filter = `tags.\`${key}\` = '${value}'`;
    const body = { experiment_ids: [experiment_id], filter, max_results: 1, run_view_type: 'ACTIVE_ONLY' };
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

  async getRun(run_id: string): Promise<MlflowRun> {
    return (await this.call('GET', `runs/get?${query({ run_id })}`, 'run')).run;
  }

  async logBatch(run_id: string, batch: MlflowBatch): Promise<void> {
    await this.call('POST', 'runs/log-batch', 'any', { run_id, ...batch });
  }

  /** @param change `end_time` in ms */
  async updateRun(run_id: string, change: { status: MlflowStatus; end_time?: number }): Promise<void> {
    await this.call('POST', 'runs/update', 'any', { run_id, ...change });
  }

  /** @throws MlflowError */
  private async call<K extends Exclude<keyof typeof answers, 'error'>>(
    method: 'GET' | 'POST',
    path: string,
    kind: K,
    body?: object,
  ): Promise<Answer<K>> {
    const { url, authorization } = this.tracker;
    const { status, text, error } = await exchange(
      `${url.replace(/\/+$/, '')}/api/2.0/mlflow/${path}`,
      {
        method,
        headers: {
          'user-agent': `zerofleet/${PROGRAM_VERSION}`,
          ...(authorization !== null && { authorization }),
          ...(body && { 'content-type': 'application/json' }),
        },
        body: body ? JSON.stringify(body) : '',
      },
      { ...this.options, answerBytes: ANSWER_BYTES },
    );
    if (error !== null) throw new MlflowError(error);
    const value = parsed(text);
    if (status < 200 || status > 299) {
      const error_code = answers.error.fits(value) ? value.error_code : null;
      throw new MlflowError('refused', { status, error_code });
    }
    if (!answers[kind].fits(value)) throw new MlflowError('protocol_error');
    return value as Answer<K>;
  }
}

type Answer<K extends keyof typeof answers> =
  (typeof answers)[K] extends Check<infer S extends TSchema> ? Static<S> : never;

function unless(code: string): (error: unknown) => null {
  return (error) => {
    if (error instanceof MlflowError && error.answer.error_code === code) return null;
    throw error;
  };
}

function query(fields: Record<string, string>): string {
  return new URLSearchParams(fields).toString();
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
