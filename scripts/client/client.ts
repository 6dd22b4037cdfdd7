/**
 * A small client of the HTTP API for the scripts and the end-to-end tests. One method per operation that they use; bodies
 * and replies have the contract's types.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type {
  Checkpoint,
  CheckpointExport,
  Dataset,
  ExportRequest,
  Job,
  JobEvent,
  JobMetric,
  JobSpec,
  Model,
  Page,
  Problem,
  Sample,
  SampleRequest,
  Worker,
} from '../../contracts/index.js';
import { isFinal } from '../../contracts/index.js';

/** An answer that is not 2xx; `problem` is its body, null when it is not a problem document. */
export class ApiError extends Error {
  override readonly name = 'ApiError';

  constructor(
    readonly status: number,
    readonly problem: Problem | null,
    request: string,
  ) {
    super(`${request}: ${status}${problem ? ` ${problem.code}: ${problem.detail ?? problem.title}` : ''}`);
  }

  get code(): string | null {
    return this.problem?.code ?? null;
  }
}

/** How `waitForJob` watches a job. */
export interface WaitOptions {
  /** Called with each poll's answer, the last one included. */
  onJob?: (job: Job) => void;
  interval_ms?: number;
  signal?: AbortSignal;
}

const CONTENT_TYPES: Record<Dataset['format'], string> = {
  text: 'text/plain; charset=utf-8',
  jsonl: 'application/x-ndjson',
  tokens: 'application/octet-stream',
};

export class ZerofleetClient {
  /**
   * @param baseUrl e.g. `http://127.0.0.1:8080`
   * @param apiKey sent as bearer token
   */
  constructor(
    readonly baseUrl: string,
    private readonly apiKey: string,
  ) {}

  /** Uploads a dataset: one UTF-8 text, or another format's content. */
  createDataset(
    name: string,
    content: string | Uint8Array,
    format: Dataset['format'] = 'text',
  ): Promise<Dataset> {
    const body = typeof content === 'string' ? new TextEncoder().encode(content) : content;
    return this.request('POST', `/v1/datasets?name=${encodeURIComponent(name)}&format=${format}`, {
      body,
      type: CONTENT_TYPES[format],
    });
  }

  /** Uploads the tar archive of a Hugging Face model's folder. */
  createModel(name: string, archive: Uint8Array): Promise<Model> {
    return this.request('POST', `/v1/models?name=${encodeURIComponent(name)}`, {
      body: archive,
      type: 'application/x-tar',
    });
  }

  deleteModel(id: string): Promise<void> {
    return this.request('DELETE', `/v1/models/${id}`);
  }

  createJob(spec: JobSpec, options: { idempotencyKey?: string } = {}): Promise<Job> {
    const headers: Record<string, string> = {};
    if (options.idempotencyKey) headers['idempotency-key'] = options.idempotencyKey;
    return this.request('POST', '/v1/jobs', { json: spec, headers });
  }

  getJob(id: string): Promise<Job> {
    return this.request('GET', `/v1/jobs/${id}`);
  }

  pauseJob(id: string): Promise<Job> {
    return this.request('POST', `/v1/jobs/${id}/pause`);
  }

  cancelJob(id: string): Promise<Job> {
    return this.request('POST', `/v1/jobs/${id}/cancel`);
  }

  resumeJob(id: string, ranks?: number): Promise<Job> {
    return this.request('POST', `/v1/jobs/${id}/resume`, { json: ranks === undefined ? {} : { ranks } });
  }

  /** Asks for another number of ranks; it changes while the job runs. */
  resizeJob(id: string, ranks: number): Promise<Job> {
    return this.request('POST', `/v1/jobs/${id}/resize`, { json: { ranks } });
  }

  listWorkers(): Promise<{ data: Worker[] }> {
    return this.request('GET', '/v1/workers');
  }

  listCheckpoints(id: string): Promise<Page<Checkpoint>> {
    return this.request('GET', `/v1/jobs/${id}/checkpoints`);
  }

  sampleCheckpoint(id: string, request: SampleRequest): Promise<Sample> {
    return this.request('POST', `/v1/checkpoints/${id}/sample`, { json: request });
  }

  exportCheckpoint(id: string, request: ExportRequest): Promise<CheckpointExport> {
    return this.request('POST', `/v1/checkpoints/${id}/export`, { json: request });
  }

  listExports(id: string): Promise<{ data: CheckpointExport[] }> {
    return this.request('GET', `/v1/checkpoints/${id}/exports`);
  }

  listEvents(id: string): Promise<JobEvent[]> {
    return this.all(`/v1/jobs/${id}/events`);
  }

  listMetrics(id: string): Promise<JobMetric[]> {
    return this.all(`/v1/jobs/${id}/metrics`);
  }

  /**
   * Polls until `until` holds or the job has ended.
   * @returns the job as last seen
   */
  async waitForJob(id: string, until: (job: Job) => boolean, options: WaitOptions = {}): Promise<Job> {
    for (;;) {
      options.signal?.throwIfAborted();
      const job = await this.getJob(id);
      options.onJob?.(job);
      if (until(job) || isFinal(job.state)) return job;
      await sleep(options.interval_ms ?? 200, undefined, { signal: options.signal });
    }
  }

  /** Every page of a list whose cursor is the last entry's `seq`. */
  private async all<T>(path: string): Promise<T[]> {
    const found: T[] = [];
    let after: string | null = null;
    do {
      const page: Page<T> = await this.request(
        'GET',
        `${path}?limit=1000${after === null ? '' : `&after=${after}`}`,
      );
      found.push(...page.data);
      after = page.next_cursor;
    } while (after !== null);
    return found;
  }

  /**
   * One request.
   * @throws ApiError for an answer that is not 2xx
   */
  async request<T>(
    method: string,
    path: string,
    options: { json?: unknown; body?: Uint8Array; type?: string; headers?: Record<string, string> } = {},
  ): Promise<T> {
    const body = options.json === undefined ? options.body : JSON.stringify(options.json);
    const type = options.json === undefined ? options.type : 'application/json';
    const response = await fetch(new URL(path, this.baseUrl), {
      method,
      headers: {
        authorization: `Bearer ${this.apiKey}`,
        ...(type ? { 'content-type': type } : {}),
        ...options.headers,
      },
      body: body ?? null,
    });
    const text = await response.text();
    if (response.ok) return (text === '' ? undefined : JSON.parse(text)) as T;
    const isProblem = response.headers.get('content-type')?.startsWith('application/problem+json');
    throw new ApiError(
      response.status,
      isProblem ? (JSON.parse(text) as Problem) : null,
      `${method} ${path}`,
    );
  }
}
