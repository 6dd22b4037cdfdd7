import { randomUUID } from 'node:crypto';
import { type SamplePayload, ZerofleetError } from '../../contracts/index.js';
import { waitOrAbort } from '../../platform/process/retry.js';
import type { TakenSample, Unsubscribe } from '../../state/index.js';
import { deferred } from '../shared/deferred.js';
import { toRankError } from '../shared/errors.js';
import type { AgentDeps } from './attempt/context.js';
import type { JobSession } from './credentials/job-session.js';
import { withSession } from './credentials/sessions.js';
import type { GpuPool } from './gpus/gpu-pool.js';
import { HostLost, type VariantRequest } from './hosted-model.js';
import { type HostGpu, ModelHosts } from './model-hosts.js';
import { goneError, type Placement, placementOf } from './placement.js';
import { ReplyWriter } from './reporting/reply-writer.js';
import { runTask, type TaskOptions } from './supervisor/task-runner.js';

/** Requests that are answered at once; a host computes some of them, and the others wait in it. */
const PLACES = 256;
/** Requests that are taken at once. */
const BATCH = 16;
/** Hosts that a request may lose. */
const MAX_LOST_HOSTS = 2;
/** Interval at which holds are renewed, requests that nobody waits for are ended, and models that nobody uses. */
const SWEEP_MS = 500;

/** A request that is being answered. */
interface Entry {
  payload: SamplePayload;
  /** Aborted when this worker must not answer it any more. */
  stop: AbortController;
  answered: Promise<void>;
}

export interface SampleServerOptions extends AgentDeps {
  pool: string;
  /** GPUs that answer, and are no slots; null: the CPU answers. */
  answer_gpus: GpuPool | null;
}

/**
 * Answers the pool's sample requests. A model is loaded at its first request into a process of its own, which answers all that come, and
 * ends when it was not used for a while. It uses no rank slots; its memory is missing in what the worker announces.
 */
export class SampleServer {
  private readonly id = randomUUID();
  private readonly hosts: ModelHosts;
  private readonly entries = new Map<string, Entry>();
  private readonly closing = new AbortController();
  private readonly watching = deferred<void>();
  private readonly taking: Promise<void>;
  private readonly sweeping: Promise<void>;
  private wake = new AbortController();

  constructor(
    private readonly options: SampleServerOptions,
    /** Called when `hosted_bytes` has changed. */
    onChange: () => void = () => undefined,
  ) {
    const { answer_gpus: gpus } = options;
    const { silence_ms } = options.timing;
    this.hosts = new ModelHosts({ run: (...host) => this.serve(...host), gpus, silence_ms, onChange });
    this.taking = this.takeForever();
    this.sweeping = this.sweepForever();
  }

  /** Memory of the machine that the loaded models take. */
  get hosted_bytes(): number {
    return this.hosts.cpu_bytes;
  }

  /** Resolves when the server takes requests. */
  async ready(): Promise<void> {
    await this.watching.promise;
  }

  /** Returns requests in progress to the pool: another worker goes on, to the same texts. Waits for the job store. Idempotent. */
  async close(): Promise<void> {
    this.closing.abort(new ZerofleetError('worker_draining', 'the worker is shutting down'));
    this.wake.abort();
    await Promise.all([this.taking, ...[...this.entries.values()].map(({ answered }) => answered)]);
    await Promise.all([this.sweeping, this.hosts.close()]);
  }

  /** Closes without waiting for the job store. */
  async disconnect(): Promise<void> {
    for (const { stop } of this.entries.values()) stop.abort(this.closing.signal.reason);
  }

  private async takeForever(): Promise<void> {
    const { store, pool, timing, log } = this.options;
    const { signal } = this.closing;
    let unwatch: Unsubscribe | null = null;
    while (!signal.aborted) {
      this.wake = new AbortController();
      const woken = this.wake.signal;
      let more = false;
      try {
        // The subscription renews itself; it begins when the job store answers.
        unwatch ??= await store.watchSamples(pool, () => this.wake.abort());
        this.watching.resolve();
        more = await this.take();
      } catch (error) {
        if (!signal.aborted) log.warn({ err: error }, 'sample requests not taken');
      }
      if (!more && !signal.aborted) await waitOrAbort(timing.stalled_interval_ms, woken);
    }
    await unwatch?.();
  }

  /** @returns true if there may be more to take */
  private async take(): Promise<boolean> {
    const { store, pool, timing } = this.options;
    const answered = [...this.entries.values()].map(({ payload }) => payload);
    if (answered.length >= PLACES) return false;
    const hold_ms = timing.lease_ms;
    const taken = await store.takeSamples({
      pool,
      worker: this.id,
      places: PLACES,
      answered,
      hold_ms,
      limit: BATCH,
    });
    for (const sample of taken) {
      const stop = new AbortController();
      const entry = { payload: sample.payload, stop, answered: Promise.resolve() };
      this.entries.set(sample.id, entry);
      entry.answered = this.answer(sample, stop).finally(() => {
        this.entries.delete(sample.id);
        this.wake.abort();
      });
    }
    return taken.length === BATCH;
  }

  private async answer(taken: TakenSample, stop: AbortController): Promise<void> {
    const { store, log } = this.options;
    const { id, payload } = taken;
    const onGone = () => stop.abort(new ZerofleetError('sample_timeout', 'nobody waits for the answer'));
    const reply = new ReplyWriter({ store, id, worker: this.id, signal: stop.signal, onGone });
    const signal = AbortSignal.any([this.closing.signal, stop.signal]);
    try {
      try {
        await reply.end({ ok: true, sample: await this.draw(taken, reply, signal) });
      } catch (error) {
        if (stop.signal.aborted) return;
        // Another worker goes on, to the same text.
        if (this.closing.signal.aborted) return await store.releaseSample(id, this.id);
        log.warn({ err: error, source: payload.source }, 'sample failed');
        const gone = await goneError(store, payload.source).catch(() => null);
        await reply.end({ ok: false, error: toRankError(gone ?? error) });
      }
    } catch (error) {
      log.warn({ err: error, source: payload.source }, 'end of a sample not told');
    }
  }

  private async draw({ payload, is_late }: TakenSample, reply: ReplyWriter, signal: AbortSignal) {
    if (is_late) throw new ZerofleetError('sample_timeout', 'the request waited for too long');
    for (let lost = 0; ; ) {
      const placement = await placementOf(this.options.store, payload);
      const host = this.hosts.find(placement);
      if (!host.has(placement.variant_key)) reply.tell('loading');
      const variant = { ...placement, withCredentials: this.credentialsOf(placement) };
      try {
        return await host.withVariant(variant, signal, async (number) => {
          reply.tell('answering');
          const task = { variant: number, request: payload.request };
          return host.answer(task, (deltas) => reply.add(deltas), signal);
        });
      } catch (error) {
        signal.throwIfAborted();
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

  private async sweepForever(): Promise<void> {
    const { timing } = this.options;
    while (!this.closing.signal.aborted) {
      await waitOrAbort(Math.min(SWEEP_MS, timing.lease_ms / 3), this.closing.signal);
      this.hosts.unloadUnused(timing.model_idle_ms);
      await this.renew();
    }
  }

  /** Renews the holds, and ends requests that nobody waits for. */
  private async renew(): Promise<void> {
    const { store, pool, timing, log } = this.options;
    try {
      for (const id of await store.renewSamples(pool, this.id, [...this.entries.keys()], timing.lease_ms))
        this.entries.get(id)?.stop.abort(new ZerofleetError('sample_timeout', 'nobody waits for the answer'));
    } catch (error) {
      log.warn({ err: error }, 'sample requests not renewed');
    }
  }
}

function wantsRoom(error: unknown): boolean {
  return error instanceof ZerofleetError && error.code === 'model_memory_in_use';
}
