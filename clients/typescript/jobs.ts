import type { operations } from '../../contracts/generated/openapi.js';
import { isFinal } from '../../contracts/job-states.js';
import type {
  Attempt,
  Checkpoint,
  DryRun,
  Job,
  JobEvent,
  JobLog,
  JobMetric,
  JobPatch,
  JobSpec,
  JobState,
  ResumeRequest,
  StreamEntry,
} from '../../contracts/types.js';
import {
  type MetricsFile,
  type MetricsFileQuery,
  type MetricsQuery,
  metricsPage,
  openMetricsFile,
} from './metrics.js';
import { allPages, type ListQuery } from './pages.js';
import { pause } from './pause.js';
import { answersIn, type StepAnswers } from './step-answers.js';
import { type FollowOptions, followJob } from './stream.js';
import { bodyOf, type Http, type Match, matchHeader } from './transport.js';

/** Page size of lists of events or metrics. */
const STREAM_PAGE = 1000;

export type ForkRequest = NonNullable<operations['forkJob']['requestBody']>['content']['application/json'];

/** `limit` is the page size. */
export type ListJobs = ListQuery<'listJobs'>;

/** Requests that create a job are idempotent: they carry a key, a new one by default. */
export interface CreateOptions {
  idempotencyKey?: string;
  signal?: AbortSignal;
}

/** Options of {@link Jobs.until}. */
export interface UntilOptions {
  /** Called with every job that was read, including the last one. */
  onJob?: (job: Job) => void;
  /** Poll interval; 200 by default. */
  interval_ms?: number;
  signal?: AbortSignal;
}

const INTERVAL_MS = 200;

type CurveOptions = Pick<MetricsQuery, 'names' | 'from_step' | 'to_step'>;

export class Jobs {
  constructor(private readonly http: Http) {}

  /** Creates a job from its document. The answer is the queued job with every default filled in. */
  create(spec: JobSpec, { idempotencyKey = crypto.randomUUID(), signal }: CreateOptions = {}): Promise<Job> {
    const header = { 'Idempotency-Key': idempotencyKey };
    return bodyOf(
      'create a job',
      this.http.POST('/v1/jobs', { params: { header }, body: spec, signal }),
    ).then((answer) => {
      if ('id' in answer) return answer;
      throw new Error('the API answered with a dry run instead of a job');
    });
  }

  /** Returns the planned job and its memory estimate; nothing is recorded. */
  async dryRun(spec: JobSpec, options: { signal?: AbortSignal } = {}): Promise<DryRun> {
    const params = { query: { dry_run: true } };
    const asked = this.http.POST('/v1/jobs', { params, body: spec, ...options });
    const answer = await bodyOf('dry run of a job', asked);
    if ('estimate' in answer) return answer;
    throw new Error('the API does not support dry runs and has created a job');
  }

  /** Returns the job once its `state_version` differs from this one, or after `seconds`, at most 60. */
  changed(jobId: string, sinceVersion: number, seconds = 30): Promise<Job> {
    const params = { path: { job_id: jobId }, query: { wait: `${seconds}s`, since_version: sinceVersion } };
    return bodyOf(`wait for ${jobId}`, this.http.GET('/v1/jobs/{job_id}', { params }));
  }

  /**
   * Downsampled metrics for a curve: at most `max_points` measured points with the extremes of `names` and both ends.
   */
  async curve(jobId: string, maxPoints: number, query: CurveOptions = {}): Promise<JobMetric[]> {
    return (await metricsPage(this.http, jobId, { ...query, max_points: maxPoints })).data;
  }

  get(jobId: string, options: { signal?: AbortSignal } = {}): Promise<Job> {
    return bodyOf(
      `job ${jobId}`,
      this.http.GET('/v1/jobs/{job_id}', { params: { path: { job_id: jobId } }, ...options }),
    );
  }

  /** The document that created a job, before it was resolved; null if none is stored. */
  async document(jobId: string, options: { signal?: AbortSignal } = {}): Promise<JobSpec | null> {
    const params = { path: { job_id: jobId } };
    const answer = await bodyOf(
      `document of ${jobId}`,
      this.http.GET('/v1/jobs/{job_id}/document', { params, ...options }),
    );
    // The contract describes it as any object: fields that the request left out have no default here.
    return answer.given as JobSpec | null;
  }

  /** Jobs that pass every filter, newest first. */
  list(query: ListJobs = {}): AsyncIterable<Job> {
    return allPages((after) =>
      bodyOf('list of jobs', this.http.GET('/v1/jobs', { params: { query: { ...query, after } } })),
    );
  }

  cancel(jobId: string): Promise<Job> {
    return bodyOf(
      `cancel ${jobId}`,
      this.http.POST('/v1/jobs/{job_id}/cancel', { params: { path: { job_id: jobId } } }),
    );
  }

  pause(jobId: string): Promise<Job> {
    return bodyOf(
      `pause ${jobId}`,
      this.http.POST('/v1/jobs/{job_id}/pause', { params: { path: { job_id: jobId } } }),
    );
  }

  resume(jobId: string, body: ResumeRequest = {}): Promise<Job> {
    return bodyOf(
      `resume ${jobId}`,
      this.http.POST('/v1/jobs/{job_id}/resume', { params: { path: { job_id: jobId } }, body }),
    );
  }

  /** Requests another number of ranks; a running job changes it without affecting the result. */
  resize(jobId: string, ranks: number): Promise<Job> {
    const params = { path: { job_id: jobId } };
    return bodyOf(`resize ${jobId}`, this.http.POST('/v1/jobs/{job_id}/resize', { params, body: { ranks } }));
  }

  /** Changes priority, labels, ranks, limits or overrides; `null` removes a label or a limit. */
  update(jobId: string, body: JobPatch, match: Match = {}): Promise<Job> {
    const params = { path: { job_id: jobId }, ...matchHeader(match) };
    return bodyOf(`update of ${jobId}`, this.http.PATCH('/v1/jobs/{job_id}', { params, body }));
  }

  /** Queues a failed job again from its newest checkpoint. */
  retry(jobId: string): Promise<Job> {
    return bodyOf(
      `retry of ${jobId}`,
      this.http.POST('/v1/jobs/{job_id}/retry', { params: { path: { job_id: jobId } } }),
    );
  }

  /** Deletes a finished job; with `artifacts` also its checkpoints and exports. */
  async delete(jobId: string, options: { artifacts?: boolean } = {}): Promise<void> {
    const params = { path: { job_id: jobId }, query: options };
    await bodyOf(`delete ${jobId}`, this.http.DELETE('/v1/jobs/{job_id}', { params }));
  }

  /** Attempts of a job, newest first. */
  attempts(jobId: string): AsyncIterable<Attempt> {
    return allPages((after) =>
      bodyOf(
        `attempts of ${jobId}`,
        this.http.GET('/v1/jobs/{job_id}/attempts', {
          params: { path: { job_id: jobId }, query: { after } },
        }),
      ),
    );
  }

  /** Requests a checkpoint at the next step. */
  checkpoint(jobId: string): Promise<Job> {
    return bodyOf(
      `checkpoint of ${jobId}`,
      this.http.POST('/v1/jobs/{job_id}/checkpoint', { params: { path: { job_id: jobId } } }),
    );
  }

  /** Creates a new job that continues from a checkpoint of this one. */
  fork(jobId: string, body: ForkRequest = {}, options: CreateOptions = {}): Promise<Job> {
    const { idempotencyKey = crypto.randomUUID(), signal } = options;
    const params = { path: { job_id: jobId }, header: { 'Idempotency-Key': idempotencyKey } };
    return bodyOf(`fork of ${jobId}`, this.http.POST('/v1/jobs/{job_id}/fork', { params, body, signal }));
  }

  /** Events of a job so far, optionally after the entry with this `position`. */
  events(jobId: string, begin?: string): AsyncIterable<JobEvent> {
    return allPages((after) => {
      const params = { path: { job_id: jobId }, query: { after, limit: STREAM_PAGE } };
      return bodyOf(`events of ${jobId}`, this.http.GET('/v1/jobs/{job_id}/events', { params }));
    }, begin);
  }

  /** Answers of checkpoints to the prompts of the job's document (`checkpoint.samples`), by step. */
  async *samples(jobId: string): AsyncGenerator<StepAnswers> {
    for await (const event of this.events(jobId)) {
      const answers = answersIn(event);
      if (answers !== null) yield answers;
    }
  }

  /** Metrics of the steps so far, optionally after the entry with this `position`. */
  metrics(jobId: string, begin?: string): AsyncIterable<JobMetric> {
    return allPages((after) => metricsPage(this.http, jobId, { after, limit: STREAM_PAGE }), begin);
  }

  /** Metrics as a file of JSON lines, CSV or TensorBoard; with `max_points` those of {@link Jobs.curve}. */
  metricsFile(
    jobId: string,
    query: MetricsFileQuery,
    options: { signal?: AbortSignal } = {},
  ): Promise<MetricsFile> {
    return openMetricsFile(this.http, jobId, query, options);
  }

  /**
   * Log lines of the job's ranks so far, of one rank or of all; see {@link Jobs.follow} for later ones.
   * @param options `after` the line with this `position`
   */
  logs(jobId: string, options: { after?: string; rank?: number } = {}): AsyncIterable<JobLog> {
    return allPages((after) => {
      const params = { path: { job_id: jobId }, query: { ...options, after, limit: STREAM_PAGE } };
      return bodyOf(`logs of ${jobId}`, this.http.GET('/v1/jobs/{job_id}/logs', { params }));
    }, options.after);
  }

  /** Log lines of the job, past and future ones, until it has ended; of one rank or of all. */
  followLogs(
    jobId: string,
    { rank, ...options }: Omit<FollowOptions, 'kinds'> & { rank?: number } = {},
  ): AsyncGenerator<JobLog, JobState> {
    const isWanted = (entry: StreamEntry): entry is JobLog =>
      entry.kind === 'log' && (rank === undefined || entry.rank === rank);
    return followJob(this.http, jobId, { ...options, kinds: ['log'] }, isWanted);
  }

  /** Events, metrics and log lines live, until the job has ended; see {@link followJob}. */
  follow(jobId: string, options: FollowOptions = {}): AsyncGenerator<StreamEntry, JobState> {
    return followJob(this.http, jobId, options, (_): _ is StreamEntry => true);
  }

  /** Waits until the job has ended. */
  async wait(jobId: string, options: { signal?: AbortSignal } = {}): Promise<Job> {
    for await (const _ of this.follow(jobId, options));
    return this.get(jobId, options);
  }

  /** Returns the job once `condition` holds or it has ended. Suitable for progress, which changes no version. */
  async until(
    jobId: string,
    condition: (job: Job) => boolean,
    { onJob, interval_ms = INTERVAL_MS, signal }: UntilOptions = {},
  ): Promise<Job> {
    for (;;) {
      const job = await this.get(jobId, { signal });
      onJob?.(job);
      if (condition(job) || isFinal(job.state)) return job;
      await pause(interval_ms, signal);
    }
  }

  /** Committed checkpoints, highest step first. */
  checkpoints(jobId: string): AsyncIterable<Checkpoint> {
    return allPages((after) =>
      bodyOf(
        `checkpoints of ${jobId}`,
        this.http.GET('/v1/jobs/{job_id}/checkpoints', {
          params: { path: { job_id: jobId }, query: { after } },
        }),
      ),
    );
  }
}
