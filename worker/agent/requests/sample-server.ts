import { randomUUID } from 'node:crypto';
import { type SamplePayload, ZerofleetError } from '../../../contracts/index.js';
import { waitOrAbort } from '../../../platform/process/retry.js';
import type { TakenSample, Unsubscribe } from '../../../state/index.js';
import { deferred } from '../../shared/deferred.js';
import { toRankError } from '../../shared/errors.js';
import { type AgentDeps, threadsOfAnswers } from '../attempt/context.js';
import type { JobSession } from '../credentials/job-session.js';
import { withSession } from '../credentials/sessions.js';
import type { GpuPool } from '../gpus/gpu-pool.js';
import { ReplyWriter } from '../reporting/reply-writer.js';
import { runTask, type TaskOptions } from '../supervisor/task-runner.js';
import { ModelProcessLost, type VariantRequest } from './model-process.js';
import { type ModelGpu, ModelRegistry } from './model-registry.js';
import { goneError, type Placement, placementOf } from './placement.js';

/** Requests in progress; a model's process runs some of them, the others wait in it. */
const MAX_RUNNING = 256;
/** Requests taken from the pool in one call. */
const BATCH = 16;
/** Number of lost processes after which a request fails. */
const MAX_LOST_PROCESSES = 2;
/** Interval at which holds are renewed, abandoned requests ended, and unused models unloaded. */
const SWEEP_MS = 500;

/** A request in progress. */
interface Entry {
  payload: SamplePayload;
  /** Aborted when this worker must stop. */
  stop: AbortController;
  answered: Promise<void>;
}

interface SampleServerOptions extends AgentDeps {
  pool: string;
  /** GPUs for models, which are not slots; null: models run on the CPU. */
  answer_gpus: GpuPool | null;
}

/**
 * Answers the pool's sample requests. The first request for a model starts a process that loads the model and answers
 * all its requests. The process ends when the model is unused for a while. It occupies no slots, but the worker
 * announces less memory.
 */
export class SampleServer {
  private readonly id = randomUUID();
  private readonly models: ModelRegistry;
  private readonly entries = new Map<string, Entry>();
  private readonly closing = new AbortController();
  private readonly watching = deferred<void>();
  private readonly taking: Promise<void>;
  private readonly sweeping: Promise<void>;
  private wake = new AbortController();

  constructor(
    private readonly options: SampleServerOptions,
    /** Called when `model_bytes` has changed. */
    onChange: () => void = () => undefined,
  ) {
    const { answer_gpus: gpus } = options;
    const { silence_ms } = options.timing;
    this.models = new ModelRegistry({ run: (...args) => this.serve(...args), gpus, silence_ms, onChange });
    this.taking = this.takeForever();
    this.sweeping = this.sweepForever();
  }

  /** Main memory that the loaded models take. */
  get modelBytes(): number {
    return this.models.cpuBytes;
  }

  /** Resolves when the server takes requests. */
  async ready(): Promise<void> {
    await this.watching.promise;
  }

  /**
   * Returns requests in progress to the pool, where another worker completes the same answers. Waits for the job store.
   * Idempotent.
   */
  async close(): Promise<void> {
    this.closing.abort(new ZerofleetError('worker_draining', 'the worker is shutting down'));
    this.wake.abort();
    await Promise.all([this.taking, ...[...this.entries.values()].map(({ answered }) => answered)]);
    await Promise.all([this.sweeping, this.models.close()]);
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
      let mayHaveMore = false;
      try {
        // The subscription renews itself; it begins when the job store answers.
        unwatch ??= await store.watchSamples(pool, () => this.wake.abort());
        this.watching.resolve();
        mayHaveMore = await this.take();
      } catch (error) {
        if (!signal.aborted) log.warn({ err: error }, 'sample requests not taken');
      }
      if (!mayHaveMore && !signal.aborted) await waitOrAbort(timing.stalled_interval_ms, woken);
    }
    await unwatch?.();
  }

  /** @returns true if there may be more to take */
  private async take(): Promise<boolean> {
    const { store, pool, timing } = this.options;
    const answered = [...this.entries.values()].map(({ payload }) => payload);
    if (answered.length >= MAX_RUNNING) return false;
    const holdMs = timing.lease_ms;
    const taken = await store.takeSamples({
      pool,
      worker: this.id,
      max_running: MAX_RUNNING,
      answered,
      hold_ms: holdMs,
      limit: BATCH,
    });
    for (const sample of taken) {
      const stop = new AbortController();
      const entry = { payload: sample.payload, stop, answered: Promise.resolve() };
      this.entries.set(sample.id, entry);
      entry.answered = this.handle(sample, stop).finally(() => {
        this.entries.delete(sample.id);
        this.wake.abort();
      });
    }
    return taken.length === BATCH;
  }

  private async handle(taken: TakenSample, stop: AbortController): Promise<void> {
    const { store, log } = this.options;
    const { id, payload } = taken;
    const onGone = () => stop.abort(new ZerofleetError('sample_timeout', 'nobody waits for the answer'));
    const reply = new ReplyWriter({ store, id, worker: this.id, signal: stop.signal, onGone });
    const signal = AbortSignal.any([this.closing.signal, stop.signal]);
    try {
      try {
        await reply.end({ ok: true, sample: await this.generate(taken, reply, signal) });
      } catch (error) {
        if (stop.signal.aborted) return;
        // Another worker completes the same answer.
        if (this.closing.signal.aborted) return await store.releaseSample(id, this.id);
        log.warn({ err: error, source: payload.source }, 'sample failed');
        const sourceError = await goneError(store, payload.source).catch(() => null);
        await reply.end({ ok: false, error: toRankError(sourceError ?? error) });
      }
    } catch (error) {
      log.warn({ err: error, source: payload.source }, 'end of a sample not delivered');
    }
  }

  private async generate({ payload, is_late }: TakenSample, reply: ReplyWriter, signal: AbortSignal) {
    if (is_late) throw new ZerofleetError('sample_timeout', 'the request waited for too long');
    for (let lost = 0; ; ) {
      const placement = await placementOf(this.options.store, payload);
      const model = this.models.find(placement);
      if (!model.has(placement.variant_key)) reply.sendState('loading');
      const variant = { ...placement, withCredentials: this.credentialsOf(placement) };
      try {
        return await model.withVariant(variant, signal, async (number) => {
          reply.sendState('answering');
          const task = { variant: number, request: payload.request };
          return model.sample(task, (deltas) => reply.add(deltas), signal);
        });
      } catch (error) {
        signal.throwIfAborted();
        if (needsRoom(error) && (await this.models.makeRoom(model))) continue;
        if (!(error instanceof ModelProcessLost)) throw error;
        if (lost++ === MAX_LOST_PROCESSES)
          throw new ZerofleetError('rank_lost', `the process of the model was lost: ${error.cause}`);
      }
    }
  }

  private serve(
    { weights, process_owner }: Placement,
    gpu: ModelGpu | null,
    signal: AbortSignal,
    serving: NonNullable<TaskOptions['serving']>,
  ): Promise<never> {
    const { object_store, processes, timing, log } = this.options;
    const run = (session: JobSession | null) =>
      runTask(
        processes,
        {
          kind: 'serve',
          object_store,
          weights,
          threads: threadsOfAnswers(this.options),
          gpu,
          heartbeat_ms: timing.heartbeat_ms,
          retry: timing.storage,
        },
        { signal, session, gpu: gpu?.uuid ?? null, log, serving },
      );
    return withSession(this.options, process_owner, { purpose: 'sample', signal }, run);
  }

  /**
   * A process with a shared base needs credentials per variant. Any other process has the session of its only source.
   */
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
      this.models.unloadUnused(timing.model_idle_ms);
      await this.renew();
    }
  }

  /** Renews the holds, and ends abandoned requests. */
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

function needsRoom(error: unknown): boolean {
  return error instanceof ZerofleetError && error.code === 'model_memory_in_use';
}
