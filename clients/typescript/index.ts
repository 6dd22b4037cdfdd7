/** Client of the HTTP API: typed by openapi.yaml, based on fetch, with idempotent retries. */
import type {
  AuditEntry,
  DataPreview,
  Estimate,
  Grade,
  Grader,
  Health,
  JobSpec,
  Me,
  Pool,
  Readiness,
  Worker,
} from '../../contracts/types.js';
import { ApiKeys } from './api-keys.js';
import { type AuditFilter, listAudit } from './audit.js';
import { Calls } from './calls.js';
import { Checkpoints } from './checkpoints.js';
import { Jobs } from './jobs.js';
import { Projects } from './projects.js';
import { Samples } from './samples.js';
import { Sessions } from './sessions.js';
import { Shares } from './shares.js';
import { Sweeps } from './sweeps.js';
import { bodyOf, type ClientOptions, createHttp, fetchOf, type Http } from './transport.js';
import { Datasets, estimate, Models } from './uploads.js';
import { Webhooks } from './webhooks.js';

export class Zerofleet {
  /** Every operation of the contract by path and method, for operations without a method here. */
  readonly http: Http;
  readonly jobs: Jobs;
  readonly calls: Calls;
  readonly checkpoints: Checkpoints;
  readonly samples: Samples;
  readonly datasets: Datasets;
  readonly models: Models;
  readonly apiKeys: ApiKeys;
  readonly sessions: Sessions;
  readonly shares: Shares;
  readonly sweeps: Sweeps;
  readonly webhooks: Webhooks;
  readonly projects: Projects;

  constructor(readonly options: ClientOptions) {
    this.http = createHttp(options);
    this.jobs = new Jobs(this.http);
    this.calls = new Calls(this.http);
    this.checkpoints = new Checkpoints(this.http, fetchOf(options));
    this.samples = new Samples(this.http);
    this.datasets = new Datasets(this.http, fetchOf(options));
    this.models = new Models(this.http);
    this.apiKeys = new ApiKeys(this.http);
    this.sessions = new Sessions(this.http, options.baseUrl);
    this.shares = new Shares(this.http, options.baseUrl);
    this.sweeps = new Sweeps(this.http);
    this.webhooks = new Webhooks(this.http);
    this.projects = new Projects(this.http);
  }

  /**
   * Memory per rank of a job, by part, for each number of ranks. @param device device of the ranks; the CPU by default
   */
  estimate(spec: JobSpec, worldSizes?: number[], device?: Estimate['device']): Promise<Estimate> {
    return estimate(this.http, spec, worldSizes, device);
  }

  /** The beginning of a job's data as the job reads it. @param texts number of texts to return; 5 by default */
  previewData(spec: JobSpec, texts?: number, options: { signal?: AbortSignal } = {}): Promise<DataPreview> {
    const body = { spec, ...(texts !== undefined && { texts }) };
    return bodyOf('preview of data', this.http.POST('/v1/data-preview', { body, ...options }));
  }

  /** Grades an answer. @param item fields of the line of data */
  grade(grader: Grader, outputText: string, item: Record<string, unknown> = {}): Promise<Grade> {
    const body = { grader, output_text: outputText, item };
    return bodyOf('grade', this.http.POST('/v1/graders/run', { body }));
  }

  /** Checks a grader. @throws ApiError `validation_failed` */
  async checkGrader(grader: Grader): Promise<void> {
    await bodyOf('check of a grader', this.http.POST('/v1/graders/validate', { body: { grader } }));
  }

  /** Properties of this client's key and its project, or of its share. */
  me(): Promise<Me> {
    return bodyOf('own rights', this.http.GET('/v1/me'));
  }

  async pools(): Promise<Pool[]> {
    return (await bodyOf('list of pools', this.http.GET('/v1/pools'))).data;
  }

  async workers(): Promise<Worker[]> {
    return (await bodyOf('list of workers', this.http.GET('/v1/workers'))).data;
  }

  /** Audit log, newest first. */
  audit(filter: AuditFilter = {}): AsyncIterable<AuditEntry> {
    return listAudit(this.http, filter);
  }

  /** Metrics of the answering process in Prometheus' text format; requires the scope `operator`. */
  metrics(): Promise<string> {
    return bodyOf('metrics', this.http.GET('/metrics', { parseAs: 'text' }));
  }

  health(): Promise<Health> {
    return bodyOf('health', this.http.GET('/healthz'));
  }

  /** Checks that Redis and the object store are reachable; not ready is an ApiError of status 503. */
  readiness(): Promise<Readiness> {
    return bodyOf('readiness', this.http.GET('/readyz'));
  }
}

export { ApiError, ConnectionError } from './errors.js';
export type { CreateOptions, ForkRequest, ListJobs, UntilOptions } from './jobs.js';
export type { MetricsFile, MetricsFileQuery } from './metrics.js';
export { collect } from './pages.js';
export { defaultRetry, type RetryPolicy } from './retry.js';
export type { SignInAddress } from './sessions.js';
export type { SharedAddress } from './shares.js';
export { answersIn, type StepAnswers } from './step-answers.js';
export type { FollowOptions } from './stream.js';
export { rangeOf } from './sweep-space.js';
export type { ClientOptions } from './transport.js';
export type { Content } from './uploads.js';
