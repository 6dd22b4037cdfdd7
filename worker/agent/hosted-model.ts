import { ZerofleetError } from '../../contracts/index.js';
import type { GeneratedText, PlacedDelta, SampleTask } from '../../contracts/queue.js';
import type { SessionCredentials } from '../../contracts/rank-protocol.js';
import { type Deferred, deferred } from '../shared/deferred.js';
import { fromRankError } from '../shared/errors.js';
import { orAbort } from '../shared/or-abort.js';
import { CHILD_START_MS, SilenceWatch } from '../shared/silence-watch.js';
import type { HostInput, HostMessage, ServedSource } from '../tasks/protocol.js';
import type { TaskOptions } from './supervisor/task-runner.js';

/** Variants of a host that nobody uses are forgotten beyond this number. */
const MAX_VARIANTS = 64;

interface Waiting extends Deferred<GeneratedText> {
  onDeltas(deltas: PlacedDelta[]): void;
}

/** A variant of a model to load. */
export interface VariantRequest {
  variant_key: string;
  source: ServedSource;
  over: boolean;
  /** Memory of the adapter over the model; 0 without one. */
  adapter_bytes: number;
  /** Calls `use` with credentials that are valid meanwhile; null: those of the host. */
  withCredentials(use: (credentials: SessionCredentials | null) => Promise<void>): Promise<void>;
}

interface Variant {
  number: number;
  ready: Promise<void>;
  users: number;
  used_at: number;
}

/** Starts the process of a host, and resolves never: rejects when it has ended. */
type StartHost = (signal: AbortSignal, host: NonNullable<TaskOptions['host']>) => Promise<never>;

export interface HostedModelOptions {
  start: StartHost;
  /** Time without a message after which a host counts as hanging, and is ended. */
  silence_ms: number;
  /** Throws if the device of the host has no room for so many more bytes. @throws ZerofleetError `model_does_not_fit`, `model_memory_in_use` */
  admit(bytes: number): void;
  /** Called when `bytes` has changed. */
  onChange(): void;
}

/** A host process ended while it had requests. They can be sent to another one. */
export class HostLost extends Error {
  override readonly name = 'HostLost';
}

/** A model in a child process that answers requests, and its variants. */
export class HostedModel {
  /** Resolves when the model is loaded. */
  readonly loaded: Promise<void>;
  /** Resolves when the process has ended. */
  readonly ended: Promise<void>;
  /** By the monotonic clock of this process. */
  used_at = performance.now();
  private is_ready = false;
  private model_bytes = 0;
  private readonly closing = new AbortController();
  /** Aborted with a HostLost when the process has ended: no wait for the process outlasts it. */
  private readonly over = new AbortController();
  private readonly waiting = new Map<number, Waiting>();
  private readonly variants = new Map<string, Variant>();
  /** Memory of variants by number, from their admission until the host has released it. */
  private readonly held = new Map<number, number>();
  private readonly loading = new Map<number, Deferred<number>>();
  private readonly leaving = new Map<number, Deferred<void>>();
  private send: (input: HostInput) => void = () => undefined;
  private next_id = 1;

  constructor(private readonly options: HostedModelOptions) {
    const loaded = deferred<void>();
    this.loaded = loaded.promise;
    this.loaded.catch(() => undefined);
    let silence: SilenceWatch | null = null;
    const host = {
      onStart: (send: (input: HostInput) => void) => {
        this.send = send;
        silence = new SilenceWatch(options.silence_ms, CHILD_START_MS, (silent_ms) =>
          this.closing.abort(
            new HostLost('the host was ended', { cause: `it was silent for ${silent_ms} ms` }),
          ),
        );
      },
      onMessage: (message: HostMessage) => {
        silence?.heard();
        if (message.host === 'alive') return;
        if (message.host !== 'allocated' && message.host !== 'loaded') return this.receive(message);
        this.model_bytes = message.bytes;
        options.onChange();
        if (message.host === 'allocated') return;
        this.is_ready = true;
        loaded.resolve();
      },
    };
    this.ended = options.start(this.closing.signal, host).catch((error: unknown) => {
      silence?.close();
      loaded.reject(error);
      this.over.abort(
        error instanceof HostLost ? error : new HostLost('the host has ended', { cause: error }),
      );
    });
  }

  get is_loaded(): boolean {
    return this.is_ready;
  }

  /** True while nothing waits for the host. */
  get is_idle(): boolean {
    return this.waiting.size === 0 && [...this.variants.values()].every(({ users }) => users === 0);
  }

  /** Memory of the model and its variants. */
  get bytes(): number {
    return [...this.held.values()].reduce((sum, bytes) => sum + bytes, this.model_bytes);
  }

  /** Memory of the variants that are being loaded. */
  get loading_bytes(): number {
    return [...this.loading.keys()].reduce((sum, number) => sum + (this.held.get(number) ?? 0), 0);
  }

  /** Whether a variant was loaded. */
  has(key: string): boolean {
    const variant = this.variants.get(key);
    return variant !== undefined && !this.loading.has(variant.number);
  }

  /**
   * Calls `use` with the number of a variant, which is loaded before and stays meanwhile.
   * @throws ZerofleetError errors of loading; HostLost; the signal's reason while it loads; errors of `use`
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
      variant.used_at = this.used_at = performance.now();
    }
  }

  /** Forgets the variant with memory that was not used for the longest time. @returns false if there is none */
  async releaseVariant(): Promise<boolean> {
    const [oldest] = this.unused().filter(({ number }) => (this.held.get(number) ?? 0) > 0);
    // A host that ends meanwhile has released everything.
    if (oldest !== undefined) await this.forget(oldest).catch(() => undefined);
    return oldest !== undefined;
  }

  private addVariant(key: string, request: VariantRequest): Variant {
    const number = this.next_id++;
    const variant: Variant = { number, ready: Promise.resolve(), users: 0, used_at: 0 };
    variant.ready = this.load(number, request).catch((error: unknown) => {
      this.variants.delete(key);
      this.hold(number, 0);
      throw error;
    });
    this.variants.set(key, variant);
    for (const unused of this.unused().slice(0, Math.max(0, this.variants.size - MAX_VARIANTS)))
      this.forget(unused).catch(() => undefined);
    return variant;
  }

  private async load(
    number: number,
    { source, over, adapter_bytes, withCredentials }: VariantRequest,
  ): Promise<void> {
    const { signal } = this.over;
    const loaded = deferred<number>();
    this.loading.set(number, loaded);
    try {
      await this.loaded;
      signal.throwIfAborted();
      if (adapter_bytes > 0) this.options.admit(adapter_bytes);
      this.hold(number, adapter_bytes);
      const loading = withCredentials(async (credentials) => {
        this.send({ kind: 'variant', variant: number, source, over, credentials });
        this.hold(number, await orAbort(loaded.promise, signal));
      });
      await orAbort(loading, signal);
    } finally {
      this.loading.delete(number);
    }
  }

  private hold(number: number, bytes: number): void {
    if (bytes === 0) this.held.delete(number);
    else this.held.set(number, bytes);
    this.options.onChange();
  }

  /** Variants that nobody uses, those first that were not used for the longest time. */
  private unused(): { key: string; number: number }[] {
    const unused = [...this.variants].filter(
      ([, { users, number }]) => users === 0 && !this.loading.has(number),
    );
    unused.sort(([, a], [, b]) => a.used_at - b.used_at);
    return unused.map(([key, { number }]) => ({ key, number }));
  }

  /** Resolves when the host has released the memory of a variant. */
  private forget({ key, number }: { key: string; number: number }): Promise<void> {
    const forgotten = deferred<void>();
    this.leaving.set(number, forgotten);
    this.variants.delete(key);
    this.send({ kind: 'forget', variant: number });
    return orAbort(forgotten.promise, this.over.signal);
  }

  /**
   * Answers a request.
   * @param variant of `withVariant`
   * @throws ZerofleetError errors of the request; HostLost; the signal's reason
   */
  async answer(
    { variant, request }: { variant: number; request: SampleTask },
    onDeltas: (deltas: PlacedDelta[]) => void,
    signal: AbortSignal,
  ): Promise<GeneratedText> {
    signal.throwIfAborted();
    const id = this.next_id++;
    const answered = deferred<GeneratedText>();
    this.waiting.set(id, { ...answered, onDeltas });
    try {
      this.send({ kind: 'answer', id, variant, request });
      return await orAbort(answered.promise, this.over.signal, signal);
    } finally {
      this.waiting.delete(id);
      if (signal.aborted) this.send({ kind: 'cancel', id });
    }
  }

  /** Ends the process. Idempotent. */
  close(reason: string): Promise<void> {
    this.closing.abort(new ZerofleetError('model_loading', reason));
    return this.ended;
  }

  private receive(message: Exclude<HostMessage, { host: 'loaded' | 'allocated' | 'alive' }>): void {
    switch (message.host) {
      case 'variant':
        this.loading.get(message.variant)?.resolve(message.bytes);
        break;
      case 'no_variant':
        this.loading.get(message.variant)?.reject(fromRankError(message.error));
        break;
      case 'forgotten':
        this.hold(message.variant, 0);
        this.leaving.get(message.variant)?.resolve();
        this.leaving.delete(message.variant);
        break;
      case 'deltas':
        this.waiting.get(message.id)?.onDeltas(message.deltas);
        break;
      case 'done':
        this.waiting.get(message.id)?.resolve(message.sample);
        break;
      case 'failed':
        this.waiting.get(message.id)?.reject(fromRankError(message.error));
        break;
    }
  }
}
