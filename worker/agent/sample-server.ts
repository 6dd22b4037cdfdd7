import { DelayedError, type Job as QueueJob } from 'bullmq';
import {
  type PlacedDelta,
  type SamplePayload,
  type SampleProgress,
  type SampleReply,
  sampleQueueName,
  ZerofleetError,
} from '../../contracts/index.js';
import { toRankError } from '../common/errors.js';
import type { JobSession } from '../credentials/job-session.js';
import { withSession } from '../credentials/sessions.js';
import type { GpuPool } from '../gpus/gpu-pool.js';
import { runTask, type TaskOptions } from '../tasks/task-runner.js';
import { HostLost, type VariantRequest } from './hosted-model.js';
import { type HostGpu, ModelHosts } from './model-hosts.js';
import { type Placement, placementOf } from './placement.js';
import { QueueServer, type QueueServerOptions } from './queue-server.js';

/** Requests in progress; a host computes some of them at once, and the others wait in it. */
const CONCURRENCY = 256;
/** Requests of lost workers begin anew on another one; a request that ends workers must not go on forever. */
const MAX_LOST_WORKERS = 3;
/** Hosts that a request may lose. */
const MAX_LOST_HOSTS = 2;
const SWEEP_MS = 500;

/** An entry that is being answered. */
interface Entry {
  id: string;
  stop: AbortController;
}

export interface SampleServerOptions extends QueueServerOptions {
  /** GPUs that answer, and are no slots; null: the CPU answers. */
  answer_gpus: GpuPool | null;
}

/**
 * Answers the pool's sample requests. A model is loaded at its first request into a process of its own, which answers all that come, and
 * ends when it was not used for a while. It uses no rank slots; its memory is missing in what the worker announces.
 */
export class SampleServer extends QueueServer<SamplePayload, SampleReply> {
  private readonly hosts: ModelHosts;
  private readonly entries = new Set<Entry>();
  private readonly sweeping: NodeJS.Timeout;

  constructor(
    options: SampleServerOptions,
    /** Called when `hosted_bytes` has changed. */
    onChange: () => void = () => undefined,
  ) {
    super(options, sampleQueueName(options.pool), {
      concurrency: CONCURRENCY,
      lockDuration: options.timing.lease_ms,
      stalledInterval: options.timing.stalled_interval_ms,
      maxStalledCount: MAX_LOST_WORKERS,
    });
    const { answer_gpus: gpus } = options;
    const { silence_ms } = options.timing;
    this.hosts = new ModelHosts({ run: (...host) => this.serve(...host), gpus, silence_ms, onChange });
    this.sweeping = setInterval(() => void this.sweep(), SWEEP_MS);
    this.sweeping.unref();
  }

  /** Memory of the machine that the loaded models take. */
  get hosted_bytes(): number {
    return this.hosts.cpu_bytes;
  }

  override async close(): Promise<void> {
    await super.close();
    clearInterval(this.sweeping);
    await this.hosts.close();
  }

  protected async answer(job: QueueJob<SamplePayload>, token?: string): Promise<SampleReply> {
    const entry: Entry = { id: job.id ?? '', stop: new AbortController() };
    this.entries.add(entry);
    try {
      return {
        ok: true,
        sample: await this.draw(job, AbortSignal.any([this.closing.signal, entry.stop.signal])),
      };
    } catch (error) {
      if (this.closing.signal.aborted) {
        // Another worker goes on, to the same text.
        await job.moveToDelayed(Date.now(), token);
        throw new DelayedError();
      }
      this.options.log.warn({ err: error, source: job.data.source }, 'sample failed');
      return { ok: false, error: toRankError(error) };
    } finally {
      this.entries.delete(entry);
    }
  }

  private async draw(job: QueueJob<SamplePayload>, signal: AbortSignal) {
    const { request, stream, expires_at } = job.data;
    if ((await this.options.store.now()) > expires_at)
      throw new ZerofleetError('sample_timeout', 'the request waited for too long');
    const tell = (progress: SampleProgress) => job.updateProgress(progress).catch(() => undefined);
    const onDeltas = (deltas: PlacedDelta[]) => void (stream && tell({ deltas }));
    for (let lost = 0; ; ) {
      const placement = await placementOf(this.options.store, job.data);
      const host = this.hosts.find(placement);
      if (!host.has(placement.variant_key)) await tell({ state: 'loading' });
      const variant = { ...placement, withCredentials: this.credentialsOf(placement) };
      try {
        return await host.withVariant(variant, signal, async (number) => {
          await tell({ state: 'answering' });
          return host.answer({ variant: number, request }, onDeltas, signal);
        });
      } catch (error) {
        if (wantsRoom(error) && (await this.hosts.makeRoom(host))) continue;
        if (!(error instanceof HostLost)) throw error;
        if (lost++ === MAX_LOST_HOSTS)
          throw new ZerofleetError('rank_lost', `the host of the model was lost: ${error.cause}`);
      }
    }
  }

  private serve(
    { weights, host_owner }: Placement,
    gpu: HostGpu | null,
    signal: AbortSignal,
    host: NonNullable<TaskOptions['host']>,
  ): Promise<never> {
    const { object_store, processes, threads_per_rank, timing, log } = this.options;
    const run = (session: JobSession | null) =>
      runTask(
        processes,
        {
          kind: 'serve',
          object_store,
          weights,
          threads: threads_per_rank ?? 1,
          gpu,
          heartbeat_ms: timing.heartbeat_ms,
          retry: timing.storage,
        },
        { signal, session, gpu: gpu?.uuid ?? null, log, host },
      );
    return withSession(this.options, host_owner, { purpose: 'sample', signal }, run);
  }

  /** Only a host of a base under adapters needs credentials for each variant; another one has those of its source. */
  private credentialsOf({ weights, owner }: Placement): VariantRequest['withCredentials'] {
    const { signal } = this.closing;
    if (!('base' in weights)) return (use) => use(null);
    return (use) =>
      withSession(this.options, owner, { purpose: 'sample', signal }, (session) =>
        use(session?.current ?? null),
      );
  }

  /** Ends models that nobody uses, and requests that nobody waits for. */
  private async sweep(): Promise<void> {
    const { store, timing, log } = this.options;
    this.hosts.unloadUnused(timing.model_idle_ms);
    if (this.entries.size === 0) return;
    try {
      const abandoned = await store.abandonedSamples([...this.entries].map(({ id }) => id));
      for (const { id, stop } of this.entries)
        if (abandoned.has(id))
          stop.abort(new ZerofleetError('sample_timeout', 'nobody waits for the answer'));
    } catch (error) {
      log.warn({ err: error }, 'abandoned samples not read');
    }
  }
}

function wantsRoom(error: unknown): boolean {
  return error instanceof ZerofleetError && error.code === 'model_memory_in_use';
}
