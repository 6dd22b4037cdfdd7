import { randomUUID } from 'node:crypto';
import {
  type ErrorCode,
  type SampleMessage,
  type SamplePayload,
  type SampleReply,
  ZerofleetError,
} from '../../contracts/index.js';
import type { Logger } from '../../platform/logging/logging.js';
import { waitOrAbort } from '../../platform/process/retry.js';
import type { SampleRequests, Unsubscribe } from '../../state/index.js';
import type { SampleCall, SamplePort } from '../services.js';
import { ReceivedAnswer } from './received-answer.js';

/** Interval of checks that requests are still being worked on. */
const CHECK_MS = 2_000;

/** Log-probabilities of unfinished answers that this process holds: some 400 MB. */
const MAX_HELD = 2 ** 21;

type Store = Pick<
  SampleRequests,
  'requestSample' | 'readMessages' | 'findSamples' | 'abandonSample' | 'watchMessages'
>;

/** Calls the workers of pools. All answers come through one stream of messages for this process. */
export class SampleQueue implements SamplePort {
  private readonly caller = randomUUID();
  private readonly waiting = new Map<string, Waiting>();
  private readonly closing = new AbortController();
  private readonly checking: Promise<void>;
  private watching: Promise<Unsubscribe> | null = null;
  private reading: Promise<void> | null = null;
  private mustRead = false;
  private after: string | null = null;

  constructor(
    private readonly store: Store,
    private readonly log: Logger,
    checkMs = CHECK_MS,
  ) {
    this.checking = this.checkForever(checkMs);
  }

  async sample(pool: string, payload: SamplePayload, call: SampleCall): Promise<SampleReply> {
    const id = randomUUID();
    const waiting = new Waiting(pool, call);
    this.waiting.set(id, waiting);
    let isRequested = false;
    try {
      await this.watch();
      isRequested = true;
      const { is_named: named, timeout_ms: waitMs } = call;
      await this.store.requestSample({ id, caller: this.caller, pool, named, payload, wait_ms: waitMs });
      return await waiting.reply;
    } catch (error) {
      this.log.warn({ err: error, pool, source: payload.source }, 'sample not answered');
      if (isRequested) await this.store.abandonSample(id).catch(() => undefined);
      throw error;
    } finally {
      waiting.close();
      this.waiting.delete(id);
    }
  }

  /** Ends the subscription. Idempotent. */
  async close(): Promise<void> {
    this.closing.abort();
    await Promise.all([this.checking, this.reading]);
    const unwatch = await this.watching?.catch(() => null);
    await unwatch?.();
  }

  /** Subscribes to the messages, once. */
  private async watch(): Promise<void> {
    this.watching ??= this.store.watchMessages(this.caller, () => void this.read());
    await this.watching.catch((error: unknown) => {
      this.watching = null;
      throw error;
    });
  }

  /** Reads all messages that there are. */
  private read(): Promise<void> {
    this.mustRead = true;
    this.reading ??= this.readAll()
      .catch((error: unknown) => this.log.warn({ err: error }, 'answers of workers not read'))
      .finally(() => {
        this.reading = null;
      });
    return this.reading;
  }

  private async readAll(): Promise<void> {
    while (this.mustRead) {
      this.mustRead = false;
      const messages = await this.store.readMessages(this.caller, this.after);
      for (const { position, id, message } of messages) {
        this.after = position;
        this.waiting.get(id)?.take(message);
      }
      this.mustRead ||= messages.length > 0;
    }
  }

  private async checkForever(checkMs: number): Promise<void> {
    while (!this.closing.signal.aborted) {
      await waitOrAbort(checkMs, this.closing.signal);
      if (this.waiting.size > 0 && !this.closing.signal.aborted)
        await this.check().catch((error: unknown) => this.log.warn({ err: error }, 'samples not checked'));
    }
  }

  /** Ends the wait for requests that no worker works on for too long, or whose model takes too long to load. */
  private async check(): Promise<void> {
    const ids = [...this.waiting.keys()];
    const states = await this.store.findSamples(ids);
    // The end of a request that is gone may be unread. Reading also tells the workers that this process is alive.
    await this.read();
    for (const [at, id] of ids.entries()) this.waiting.get(id)?.check(states[at] ?? 'gone');
    this.endLargest();
  }

  /** Ends the largest answers when this process holds too much of them. */
  private endLargest(): void {
    const largest = [...this.waiting.values()].sort((a, b) => b.numLogprobs - a.numLogprobs);
    let held = largest.reduce((sum, { numLogprobs }) => sum + numLogprobs, 0);
    for (const waiting of largest) {
      if (held <= MAX_HELD) return;
      held -= waiting.numLogprobs;
      waiting.giveUp();
    }
  }
}

/** One request until its reply. */
class Waiting {
  readonly reply: Promise<SampleReply>;
  private resolve!: (reply: SampleReply) => void;
  private reject!: (error: unknown) => void;
  private readonly received = new ReceivedAnswer();
  /** Last sign of a worker, and since when the model is loading, by the monotonic clock. */
  private seenAt = performance.now();
  private loadingSince: number | null = null;
  private checksGone = 0;

  constructor(
    private readonly pool: string,
    private readonly call: SampleCall,
  ) {
    this.reply = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    this.reply.catch(() => undefined);
    call.signal.addEventListener('abort', this.abort, { once: true });
    if (call.signal.aborted) this.abort();
  }

  take(message: SampleMessage): void {
    this.seenAt = performance.now();
    try {
      if ('end' in message) this.end(message.end);
      else if ('deltas' in message) this.grow(message);
      else this.begin(message);
    } catch (error) {
      this.reject(error);
    }
  }

  /** @param state of the request in the store */
  check(state: 'waiting' | 'taken' | 'gone'): void {
    const now = performance.now();
    if (state === 'taken') this.seenAt = now;
    // A request that is being added is gone for the first check.
    this.checksGone = state === 'gone' ? this.checksGone + 1 : 0;
    if (this.loadingSince !== null && now - this.loadingSince > this.call.loading_ms)
      this.fail('model_loading', 'a worker is loading the model; send the request again');
    else if (this.checksGone > 1) this.fail('workers_lost', 'the request was lost; send it again');
    else if (now - this.seenAt > this.call.timeout_ms)
      this.fail(
        'sample_timeout',
        `no worker of pool ${this.pool} answered in time; request fewer tokens, or check that the pool has a worker`,
      );
  }

  /** Log-probabilities that were received. */
  get numLogprobs(): number {
    return this.received.numLogprobs;
  }

  /** Ends the request because its answer takes too much memory. */
  giveUp(): void {
    const message = 'the answers in progress have too many log-probabilities; try again, or ask for fewer';
    this.fail('sample_queue_full', message);
  }

  close(): void {
    this.call.signal.removeEventListener('abort', this.abort);
  }

  private begin({ state }: Extract<SampleMessage, { state: unknown }>): void {
    this.loadingSince = state === 'loading' ? performance.now() : null;
    if (state === 'loading') return;
    // Nobody has seen the texts of a worker that was lost, if the caller waits for the whole.
    if (this.call.onDeltas === undefined) this.received.clear();
    this.call.onStart?.();
  }

  private grow({ deltas }: Extract<SampleMessage, { deltas: unknown }>): void {
    this.loadingSince = null;
    const added = this.received.take(deltas);
    if (added.length > 0) this.call.onDeltas?.(added);
  }

  private end(reply: Extract<SampleMessage, { end: unknown }>['end']): void {
    if (reply.ok) {
      const { choices, ...sample } = reply.sample;
      this.resolve({ ok: true, sample: { ...sample, choices: this.received.whole(choices) } });
    } else this.resolve(reply);
  }

  private readonly abort = () => this.reject(this.call.signal.reason);

  private fail(code: ErrorCode, message: string): void {
    this.reject(new ZerofleetError(code, message));
  }
}
