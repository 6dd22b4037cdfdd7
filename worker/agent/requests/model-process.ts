import { ZerofleetError } from '../../../contracts/index.js';
import type { GeneratedText, PositionedDelta, SampleTask } from '../../../contracts/queue.js';
import type { SessionCredentials } from '../../../contracts/rank-protocol.js';
import { type Deferred, deferred } from '../../shared/deferred.js';
import { fromRankError } from '../../shared/errors.js';
import { orAbort } from '../../shared/or-abort.js';
import { CHILD_START_MS, SilenceWatch } from '../../shared/silence-watch.js';
import type { ServedSource, ServeInput, ServeMessage } from '../../tasks/protocol.js';
import type { TaskOptions } from '../supervisor/task-runner.js';

/** Number of variants of a process beyond which unused ones are unloaded. */
const MAX_VARIANTS = 64;

/** A request until its answer is complete. */
interface PendingSample extends Deferred<GeneratedText> {
  onDeltas(deltas: PositionedDelta[]): void;
}

/** A variant of a model to load; see `ServeInput`. */
export interface VariantRequest {
  variant_key: string;
  source: ServedSource;
  /** True if the adapter of the source is loaded over the model. */
  is_adapter: boolean;
  /** Memory of the adapter over the model; 0 without one. */
  adapter_bytes: number;
  /** Calls `use` with credentials that stay valid until it ends; null: those of the process. */
  withCredentials(use: (credentials: SessionCredentials | null) => Promise<void>): Promise<void>;
}

interface Variant {
  number: number;
  ready: Promise<void>;
  users: number;
  used_at: number;
}

/** Starts the process. Never resolves; rejects when the process has ended. */
type StartProcess = (signal: AbortSignal, serving: NonNullable<TaskOptions['serving']>) => Promise<never>;

export interface ModelProcessOptions {
  start: StartProcess;
  /** Time without a message after which the process counts as hanging, and is killed. */
  silence_ms: number;
  /**
   * Requires this many more bytes of the process's device.
   * @throws ZerofleetError `model_does_not_fit`, `model_memory_in_use`
   */
  admit(bytes: number): void;
  /** Called when `bytes` has changed. */
  onChange(): void;
}

/** A process ended while it had requests. Another process can answer them. */
export class ModelProcessLost extends Error {
  override readonly name = 'ModelProcessLost';
}

/** The agent's side of a child process that serves a model and its variants. */
export class ModelProcess {
  /** Resolves when the model is loaded. */
  readonly loaded: Promise<void>;
  /** Resolves when the process has ended. */
  readonly ended: Promise<void>;
  /** Time of the last use, by the monotonic clock of this process. */
  usedAt = performance.now();
  private isReady = false;
  private modelBytes = 0;
  private readonly closing = new AbortController();
  /** Aborted with a ModelProcessLost when the process has ended; every wait for the process observes it. */
  private readonly lost = new AbortController();
  private readonly samples = new Map<number, PendingSample>();
  private readonly variants = new Map<string, Variant>();
  /** Memory of variants by number, from their admission until the process has released it. */
  private readonly variantBytes = new Map<number, number>();
  private readonly loading = new Map<number, Deferred<number>>();
  private readonly unloading = new Map<number, Deferred<void>>();
  private send: (input: ServeInput) => void = () => undefined;
  private nextId = 1;

  constructor(private readonly options: ModelProcessOptions) {
    const loaded = deferred<void>();
    this.loaded = loaded.promise;
    this.loaded.catch(() => undefined);
    let silence: SilenceWatch | null = null;
    const serving = {
      onStart: (send: (input: ServeInput) => void) => {
        this.send = send;
        silence = new SilenceWatch(options.silence_ms, CHILD_START_MS, (silentMs) =>
          this.closing.abort(
            new ModelProcessLost('the process was killed', { cause: `it was silent for ${silentMs} ms` }),
          ),
        );
      },
      onMessage: (message: ServeMessage) => {
        silence?.heard();
        if (message.event === 'alive') return;
        if (message.event !== 'allocated' && message.event !== 'loaded') return this.receive(message);
        this.modelBytes = message.bytes;
        options.onChange();
        if (message.event === 'allocated') return;
        this.isReady = true;
        loaded.resolve();
      },
    };
    this.ended = options.start(this.closing.signal, serving).catch((error: unknown) => {
      silence?.close();
      loaded.reject(error);
      this.lost.abort(
        error instanceof ModelProcessLost
          ? error
          : new ModelProcessLost('the process has ended', { cause: error }),
      );
    });
  }

  get isLoaded(): boolean {
    return this.isReady;
  }

  /** True if no request is in progress. */
  get isIdle(): boolean {
    return this.samples.size === 0 && [...this.variants.values()].every(({ users }) => users === 0);
  }

  /** Memory of the model and its variants. */
  get bytes(): number {
    return [...this.variantBytes.values()].reduce((sum, bytes) => sum + bytes, this.modelBytes);
  }

  /** Memory of the variants in loading. */
  get loadingBytes(): number {
    return [...this.loading.keys()].reduce((sum, number) => sum + (this.variantBytes.get(number) ?? 0), 0);
  }

  /** True if the variant is loaded. */
  has(key: string): boolean {
    const variant = this.variants.get(key);
    return variant !== undefined && !this.loading.has(variant.number);
  }

  /**
   * Loads a variant if it is not loaded, calls `use` with its number, and keeps it until `use` ends.
   * @throws ZerofleetError errors of loading; ModelProcessLost; the signal's reason while the variant loads; errors of
   *   `use`
   */
  async withVariant<T>(
    request: VariantRequest,
    signal: AbortSignal,
    use: (variant: number) => Promise<T>,
  ): Promise<T> {
    const { variant_key: key } = request;
    const variant = this.variants.get(key) ?? this.addVariant(key, request);
    variant.users += 1;
    try {
      await orAbort(variant.ready, signal);
      return await use(variant.number);
    } finally {
      variant.users -= 1;
      variant.used_at = this.usedAt = performance.now();
    }
  }

  /** Unloads the least recently used of the unused variants that take memory. @returns false if there is none */
  async releaseVariant(): Promise<boolean> {
    const [oldest] = this.unused().filter(({ number }) => (this.variantBytes.get(number) ?? 0) > 0);
    // A process that ends meanwhile has released all memory.
    if (oldest !== undefined) await this.unload(oldest).catch(() => undefined);
    return oldest !== undefined;
  }

  private addVariant(key: string, request: VariantRequest): Variant {
    const number = this.nextId++;
    const variant: Variant = { number, ready: Promise.resolve(), users: 0, used_at: 0 };
    variant.ready = this.load(number, request).catch((error: unknown) => {
      this.variants.delete(key);
      this.setBytes(number, 0);
      throw error;
    });
    this.variants.set(key, variant);
    for (const unused of this.unused().slice(0, Math.max(0, this.variants.size - MAX_VARIANTS)))
      this.unload(unused).catch(() => undefined);
    return variant;
  }

  private async load(
    number: number,
    { source, is_adapter, adapter_bytes, withCredentials }: VariantRequest,
  ): Promise<void> {
    const { signal } = this.lost;
    const loaded = deferred<number>();
    this.loading.set(number, loaded);
    try {
      await this.loaded;
      signal.throwIfAborted();
      if (adapter_bytes > 0) this.options.admit(adapter_bytes);
      this.setBytes(number, adapter_bytes);
      const loading = withCredentials(async (credentials) => {
        this.send({ kind: 'load_variant', variant: number, source, is_adapter, credentials });
        this.setBytes(number, await orAbort(loaded.promise, signal));
      });
      await orAbort(loading, signal);
    } finally {
      this.loading.delete(number);
    }
  }

  private setBytes(number: number, bytes: number): void {
    if (bytes === 0) this.variantBytes.delete(number);
    else this.variantBytes.set(number, bytes);
    this.options.onChange();
  }

  /** Returns the unused variants, least recently used first. */
  private unused(): { key: string; number: number }[] {
    const unused = [...this.variants].filter(
      ([, { users, number }]) => users === 0 && !this.loading.has(number),
    );
    unused.sort(([, a], [, b]) => a.used_at - b.used_at);
    return unused.map(([key, { number }]) => ({ key, number }));
  }

  /** Unloads a variant. Resolves when the process has released its memory. */
  private unload({ key, number }: { key: string; number: number }): Promise<void> {
    const unloaded = deferred<void>();
    this.unloading.set(number, unloaded);
    this.variants.delete(key);
    this.send({ kind: 'unload_variant', variant: number });
    return orAbort(unloaded.promise, this.lost.signal);
  }

  /**
   * Sends a request to the process and waits for its answer.
   * @param variant number from `withVariant`
   * @throws ZerofleetError errors of the request; ModelProcessLost; the signal's reason
   */
  async sample(
    { variant, request }: { variant: number; request: SampleTask },
    onDeltas: (deltas: PositionedDelta[]) => void,
    signal: AbortSignal,
  ): Promise<GeneratedText> {
    signal.throwIfAborted();
    const id = this.nextId++;
    const answer = deferred<GeneratedText>();
    this.samples.set(id, { ...answer, onDeltas });
    try {
      this.send({ kind: 'sample', id, variant, request });
      return await orAbort(answer.promise, this.lost.signal, signal);
    } finally {
      this.samples.delete(id);
      if (signal.aborted) this.send({ kind: 'cancel', id });
    }
  }

  /** Ends the process. Idempotent. */
  close(reason: string): Promise<void> {
    this.closing.abort(new ZerofleetError('model_loading', reason));
    return this.ended;
  }

  private receive(message: Exclude<ServeMessage, { event: 'loaded' | 'allocated' | 'alive' }>): void {
    switch (message.event) {
      case 'variant_loaded':
        this.loading.get(message.variant)?.resolve(message.bytes);
        break;
      case 'variant_failed':
        this.loading.get(message.variant)?.reject(fromRankError(message.error));
        break;
      case 'variant_unloaded':
        this.setBytes(message.variant, 0);
        this.unloading.get(message.variant)?.resolve();
        this.unloading.delete(message.variant);
        break;
      case 'deltas':
        this.samples.get(message.id)?.onDeltas(message.deltas);
        break;
      case 'done':
        this.samples.get(message.id)?.resolve(message.sample);
        break;
      case 'failed':
        this.samples.get(message.id)?.reject(fromRankError(message.error));
        break;
    }
  }
}
