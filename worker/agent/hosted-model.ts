import { ZerofleetError } from '../../contracts/index.js';
import type { GeneratedText, PlacedDelta, SampleTask } from '../../contracts/queue.js';
import type { SessionCredentials } from '../../contracts/rank-protocol.js';
import { type Deferred, deferred } from '../common/deferred.js';
import { fromRankError } from '../common/errors.js';
import { CHILD_START_MS, SilenceWatch } from '../supervisor/silence-watch.js';
import type { HostInput, HostMessage, ServedSource } from '../tasks/protocol.js';
import type { TaskOptions } from '../tasks/task-runner.js';

/** Variants of a host that nobody uses are forgotten beyond this number. */
const MAX_VARIANTS = 64;

interface Waiting {
  resolve(sample: GeneratedText): void;
  reject(error: unknown): void;
  onDeltas(deltas: PlacedDelta[]): void;
}

/** A variant of a model to load. */
export interface VariantRequest {
  variant_key: string;
  source: ServedSource;
  over: boolean;
  /** Calls `use` with credentials that are valid meanwhile; null: those of the host. */
  withCredentials(use: (credentials: SessionCredentials | null) => Promise<void>): Promise<void>;
}

interface Variant {
  number: number;
  ready: Promise<void>;
  bytes: number;
  users: number;
  used_at: number;
}

/** Starts the process of a host, and resolves never: rejects when it has ended. */
type StartHost = (signal: AbortSignal, host: NonNullable<TaskOptions['host']>) => Promise<never>;

export interface HostedModelOptions {
  start: StartHost;
  /** Time without a message after which a host counts as hanging, and is ended. */
  silence_ms: number;
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
  private model_bytes = 0;
  private readonly closing = new AbortController();
  private readonly waiting = new Map<number, Waiting>();
  private readonly variants = new Map<string, Variant>();
  private readonly loading = new Map<number, Deferred<number>>();
  private send: (input: HostInput) => void = () => undefined;
  private lost: HostLost | null = null;
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
        if (message.host === 'loaded') {
          this.model_bytes = message.bytes;
          options.onChange();
          loaded.resolve();
        } else this.receive(message);
      },
    };
    this.ended = options.start(this.closing.signal, host).catch((error: unknown) => {
      silence?.close();
      loaded.reject(error);
      const lost = error instanceof HostLost ? error : new HostLost('the host has ended', { cause: error });
      this.lost = lost;
      for (const { reject } of [...this.waiting.values(), ...this.loading.values()]) reject(lost);
      this.waiting.clear();
      this.loading.clear();
    });
  }

  get is_loaded(): boolean {
    return this.model_bytes > 0;
  }

  /** True while nothing waits for the host. */
  get is_idle(): boolean {
    return this.waiting.size === 0 && [...this.variants.values()].every(({ users }) => users === 0);
  }

  /** Memory of the model and its variants. */
  get bytes(): number {
    return [...this.variants.values()].reduce((sum, { bytes }) => sum + bytes, this.model_bytes);
  }

  /** Whether a variant was loaded. */
  has(key: string): boolean {
    const variant = this.variants.get(key);
    return variant !== undefined && !this.loading.has(variant.number);
  }

  /**
   * Calls `use` with the number of a variant, which is loaded before and stays meanwhile.
   * @throws ZerofleetError errors of loading; HostLost; errors of `use`
   */
  async withVariant<T>(request: VariantRequest, use: (variant: number) => Promise<T>): Promise<T> {
    const { variant_key: key } = request;
    const variant = this.variants.get(key) ?? this.addVariant(key, request);
    variant.users += 1;
    try {
      await variant.ready;
      return await use(variant.number);
    } finally {
      variant.users -= 1;
      variant.used_at = this.used_at = performance.now();
    }
  }

  private addVariant(key: string, request: VariantRequest): Variant {
    const number = this.next_id++;
    const variant: Variant = { number, ready: Promise.resolve(), bytes: 0, users: 0, used_at: 0 };
    variant.ready = this.load(variant, request).catch((error: unknown) => {
      this.variants.delete(key);
      throw error;
    });
    this.variants.set(key, variant);
    this.forgetUnused();
    return variant;
  }

  private async load(variant: Variant, { source, over, withCredentials }: VariantRequest): Promise<void> {
    const { number } = variant;
    const loaded = deferred<number>();
    loaded.promise.catch(() => undefined);
    this.loading.set(number, loaded);
    try {
      await this.loaded;
      await withCredentials(async (credentials) => {
        this.send({ kind: 'variant', variant: number, source, over, credentials });
        variant.bytes = await loaded.promise;
      });
      this.options.onChange();
    } finally {
      this.loading.delete(number);
    }
  }

  private forgetUnused(): void {
    const unused = [...this.variants].filter(
      ([, { users, number }]) => users === 0 && !this.loading.has(number),
    );
    unused.sort(([, a], [, b]) => a.used_at - b.used_at);
    for (const [key, { number }] of unused.slice(0, Math.max(0, this.variants.size - MAX_VARIANTS))) {
      this.variants.delete(key);
      this.send({ kind: 'forget', variant: number });
    }
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
    if (this.lost !== null) throw this.lost;
    const id = this.next_id++;
    const answered = deferred<GeneratedText>();
    this.waiting.set(id, { ...answered, onDeltas });
    const cancel = () => {
      this.send({ kind: 'cancel', id });
      answered.reject(signal.reason);
    };
    signal.addEventListener('abort', cancel, { once: true });
    try {
      this.send({ kind: 'answer', id, variant, request });
      return await answered.promise;
    } finally {
      signal.removeEventListener('abort', cancel);
      this.waiting.delete(id);
    }
  }

  /** Ends the process. Idempotent. */
  close(reason: string): Promise<void> {
    this.closing.abort(new ZerofleetError('model_loading', reason));
    return this.ended;
  }

  private receive(message: Exclude<HostMessage, { host: 'loaded' | 'alive' }>): void {
    if (message.host === 'variant' || message.host === 'no_variant') {
      const loading = this.loading.get(message.variant);
      if (message.host === 'variant') loading?.resolve(message.bytes);
      else loading?.reject(fromRankError(message.error));
      return;
    }
    const waiting = this.waiting.get(message.id);
    if (waiting === undefined) return;
    if (message.host === 'deltas') waiting.onDeltas(message.deltas);
    else if (message.host === 'done') waiting.resolve(message.sample);
    else waiting.reject(fromRankError(message.error));
  }
}
