import { ZerofleetError } from '../../contracts/index.js';
import type { GeneratedText, PlacedDelta, SampleTask } from '../../contracts/queue.js';
import { deferred } from '../common/deferred.js';
import { fromRankError } from '../common/errors.js';
import type { HostInput, HostMessage } from '../tasks/protocol.js';
import type { TaskOptions } from '../tasks/task-runner.js';

interface Waiting {
  resolve(sample: GeneratedText): void;
  reject(error: unknown): void;
  onDeltas(deltas: PlacedDelta[]): void;
}

/** Starts the process of a host, and resolves never: rejects when it has ended. */
type StartHost = (signal: AbortSignal, host: NonNullable<TaskOptions['host']>) => Promise<never>;

/** A host process ended while it had requests. They can be sent to another one. */
export class HostLost extends Error {
  override readonly name = 'HostLost';
}

/** A model in a child process that answers requests. */
export class HostedModel {
  /** Resolves with the bytes of the model when it is loaded. */
  readonly loaded: Promise<number>;
  /** Resolves when the process has ended. */
  readonly ended: Promise<void>;
  bytes = 0;
  /** By the monotonic clock of this process. */
  used_at = performance.now();
  private readonly closing = new AbortController();
  private readonly waiting = new Map<number, Waiting>();
  private send: (input: HostInput) => void = () => undefined;
  private next_id = 1;

  constructor(start: StartHost) {
    const loaded = deferred<number>();
    this.loaded = loaded.promise;
    this.loaded.catch(() => undefined);
    const host = {
      onStart: (send: (input: HostInput) => void) => {
        this.send = send;
      },
      onMessage: (message: HostMessage) => {
        if (message.host === 'loaded') {
          this.bytes = message.bytes;
          loaded.resolve(message.bytes);
        } else this.receive(message);
      },
    };
    this.ended = start(this.closing.signal, host).catch((error: unknown) => {
      loaded.reject(error);
      for (const { reject } of this.waiting.values())
        reject(new HostLost('the host has ended', { cause: error }));
      this.waiting.clear();
    });
  }

  get is_idle(): boolean {
    return this.waiting.size === 0;
  }

  /**
   * Answers a request when the model is loaded.
   * @throws ZerofleetError errors of loading and of the request; HostLost; the signal's reason
   */
  async answer(
    request: SampleTask,
    onDeltas: (deltas: PlacedDelta[]) => void,
    signal: AbortSignal,
  ): Promise<GeneratedText> {
    const id = this.next_id++;
    const answered = new Promise<GeneratedText>((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, onDeltas });
    });
    const cancel = () => {
      this.send({ kind: 'cancel', id });
      this.waiting.get(id)?.reject(signal.reason);
    };
    signal.addEventListener('abort', cancel, { once: true });
    try {
      await Promise.race([this.loaded, answered]);
      signal.throwIfAborted();
      this.send({ kind: 'answer', id, request });
      return await answered;
    } finally {
      answered.catch(() => undefined);
      signal.removeEventListener('abort', cancel);
      this.waiting.delete(id);
      this.used_at = performance.now();
    }
  }

  /** Ends the process. Idempotent. */
  close(reason: string): Promise<void> {
    this.closing.abort(new ZerofleetError('model_loading', reason));
    return this.ended;
  }

  private receive(message: Exclude<HostMessage, { host: 'loaded' }>): void {
    const waiting = this.waiting.get(message.id);
    if (waiting === undefined) return;
    if (message.host === 'deltas') waiting.onDeltas(message.deltas);
    else if (message.host === 'done') waiting.resolve(message.sample);
    else waiting.reject(fromRankError(message.error));
  }
}
