import { type ConnectionOptions, type Job as QueueJob, Worker } from 'bullmq';
import {
  REDIS_PREFIX,
  type SamplePayload,
  type SampleReply,
  sampleQueueName,
  ZerofleetError,
} from '../../contracts/index.js';
import { redisOptions } from '../../platform/redis/connect.js';
import type { AgentDeps } from '../attempt/context.js';
import { toRankError } from '../common/errors.js';
import { withSession } from '../credentials/sessions.js';
import { runTask } from '../tasks/task-runner.js';

export interface SampleServerOptions extends AgentDeps {
  redis_url: string;
  pool: string;
}

/**
 * Serves the pool's sample requests, one at a time, each in a child process. It uses no rank slots: a sample is short and must not wait for
 * the end of a training.
 */
export class SampleServer {
  private readonly worker: Worker<SamplePayload, SampleReply>;
  private readonly closing = new AbortController();

  constructor(private readonly options: SampleServerOptions) {
    this.worker = new Worker<SamplePayload, SampleReply>(
      sampleQueueName(options.pool),
      (entry) => this.answer(entry),
      { connection: redisOptions(options.redis_url, 'queue') as ConnectionOptions, prefix: REDIS_PREFIX },
    );
    this.worker.on('error', (error) => options.log.warn({ err: error }, 'sample queue'));
  }

  /** Resolves when the server takes requests. */
  async ready(): Promise<void> {
    await this.worker.waitUntilReady();
  }

  /** Aborts a sample in progress; its client may ask again. Waits for Redis. */
  async close(): Promise<void> {
    this.closing.abort(new ZerofleetError('worker_draining', 'the worker is shutting down'));
    await this.worker.close();
  }

  /** Closes without waiting for Redis. */
  async disconnect(): Promise<void> {
    await this.worker.disconnect();
  }

  private async answer({ data }: QueueJob<SamplePayload>): Promise<SampleReply> {
    try {
      return { ok: true, sample: await this.draw(data) };
    } catch (error) {
      this.options.log.warn({ err: error, checkpoint: data.checkpoint.id }, 'sample failed');
      return { ok: false, error: toRankError(error) };
    }
  }

  private async draw({ job_id, checkpoint, request, expires_at }: SamplePayload) {
    const { store, object_store, processes, threads_per_rank, timing, log } = this.options;
    const left_ms = expires_at - (await store.now());
    if (left_ms <= 0) throw new ZerofleetError('sample_timeout', 'the request waited for too long');
    const job = await store.getJob(job_id);
    if (job === null) throw new ZerofleetError('checkpoint_not_found', `job ${job_id} is gone`);
    const signal = AbortSignal.any([this.closing.signal, AbortSignal.timeout(left_ms)]);
    return withSession(this.options, job, { purpose: 'sample', signal }, (session) =>
      runTask(
        processes,
        {
          kind: 'sample',
          object_store,
          spec: job.spec,
          checkpoint: checkpoint.prefix,
          request,
          threads: threads_per_rank ?? 1,
          retry: timing.storage,
        },
        { signal, session, log },
      ),
    );
  }
}
