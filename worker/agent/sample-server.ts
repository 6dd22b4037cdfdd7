import type { Job as QueueJob } from 'bullmq';
import {
  type SamplePayload,
  type SampleReply,
  sampleQueueName,
  ZerofleetError,
} from '../../contracts/index.js';
import { toRankError } from '../common/errors.js';
import { withSession } from '../credentials/sessions.js';
import { runTask } from '../tasks/task-runner.js';
import { QueueServer, type QueueServerOptions } from './queue-server.js';

/**
 * Serves the pool's sample requests, one at a time, each in a child process. It uses no rank slots: a sample is short and must not wait for
 * the end of a training.
 */
export class SampleServer extends QueueServer<SamplePayload, SampleReply> {
  constructor(options: QueueServerOptions) {
    super(options, sampleQueueName(options.pool));
  }

  protected async answer({ data }: QueueJob<SamplePayload>): Promise<SampleReply> {
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
