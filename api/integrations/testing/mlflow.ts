/** An MLflow server for tests, in memory: the part of the REST API that forwarding uses, with the limits of MLflow. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { MlflowBatch, MlflowMetric, MlflowText } from '../mlflow-client.js';

export interface StoredRun {
  run_id: string;
  experiment_id: string;
  run_name: string;
  status: string;
  start_time: number;
  end_time: number | null;
  metrics: MlflowMetric[];
  params: Map<string, string>;
  tags: Map<string, string>;
}

export interface TestMlflow {
  url: string;
  experiments: ReadonlyMap<string, string>;
  runs: readonly StoredRun[];
  /** `authorization` of each request. */
  authorizations: readonly (string | undefined)[];
  /**
   * Fault of the requests whose paths have this end. A status: it is the answer; `lost`: the request has its effect and no answer; `hang`:
   * no answer. Null: no fault.
   */
  fault: { path: string; what: number | 'lost' | 'hang' } | null;
  /** Number of requests that met the fault. */
  faults: number;
  /** Resolves once `condition` holds; it is evaluated after each request. */
  until(condition: () => boolean): Promise<void>;
  close(): Promise<void>;
}

class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly error_code: string,
  ) {
    super(error_code);
  }
}

const NAME = /^[/\w.\- ]{1,250}$/;

class MlflowStore {
  readonly experiments = new Map<string, string>();
  readonly runs: StoredRun[] = [];

  handle(path: string, query: URLSearchParams, body: Record<string, unknown>): object {
    switch (path) {
      case 'experiments/get-by-name': {
        const experiment_id = this.experiments.get(query.get('experiment_name') ?? '');
        if (experiment_id === undefined) throw new Refusal(404, 'RESOURCE_DOES_NOT_EXIST');
        return { experiment: { experiment_id } };
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
    const run = {
      ...fields,
      run_id: `run${this.runs.length}`,
      status: 'RUNNING',
      end_time: null,
      metrics: [],
      params: new Map(),
    };
    this.runs.push({ ...run, tags: new Map(tags.map(({ key, value }) => [key, value])) });
    return this.runs.at(-1) as StoredRun;
  }

  private runOf(id: unknown): StoredRun {
    const run = this.runs.find(({ run_id }) => run_id === id);
    if (!run) throw new Refusal(404, 'RESOURCE_DOES_NOT_EXIST');
    return run;
  }
}

export async function startTestMlflow(): Promise<TestMlflow> {
  const store = new MlflowStore();
  const authorizations: (string | undefined)[] = [];
  let wake: () => void = () => undefined;

  const server = createServer(async (request, reply) => {
    authorizations.push(request.headers.authorization);
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost');
    const [, path = ''] = /^\/base\/api\/2\.0\/mlflow\/(.*)$/.exec(pathname) ?? [];
    const body = await readJson(request);
    const fault =
      mlflow.fault?.path !== undefined && path.endsWith(mlflow.fault.path) ? mlflow.fault.what : null;
    if (fault !== null) mlflow.faults += 1;
    try {
      if (fault === null) answer(reply, 200, store.handle(path, searchParams, body));
      else if (fault === 'lost') {
        store.handle(path, searchParams, body);
        request.socket.destroy();
      } else if (fault !== 'hang')
        answer(reply, fault, { error_code: 'INTERNAL_ERROR', message: 'as the test asked' });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      answer(reply, error.status, {
        error_code: error.error_code,
        message: `refused ${JSON.stringify(body)}`,
      });
    }
    wake();
  });

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const mlflow: TestMlflow = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/base/`,
    experiments: store.experiments,
    runs: store.runs,
    authorizations,
    fault: null,
    faults: 0,
    async until(condition) {
      while (!condition()) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return mlflow;
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
      (value === 'NaN' || Number.isFinite(value)) && Number.isInteger(timestamp) && Number.isInteger(step),
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

async function readJson(request: IncomingMessage): Promise<Record<string, unknown>> {
  let text = '';
  for await (const piece of request.setEncoding('utf8')) text += piece;
  return text === '' ? {} : JSON.parse(text);
}

function answer(reply: ServerResponse, status: number, body: object): void {
  reply.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
