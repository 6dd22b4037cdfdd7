import { randomUUID } from 'node:crypto';
import { type ConnectionOptions, Queue, QueueEvents, type Job as QueueJob } from 'bullmq';
import {
  REDIS_PREFIX,
  type SamplePayload,
  type SampleProgress,
  type SampleReply,
  sampleQueueName,
  ZerofleetError,
} from '../../contracts/index.js';
import type { Logger } from '../../platform/logging/logging.js';
import { redisOptions } from '../../platform/redis/connect.js';
import type { JobStorePort } from '../../state/index.js';
import type { SampleCall, SamplePort } from '../services.js';
import { PerPool } from './per-pool.js';

/** Retention of finished entries in BullMQ: replies are read immediately. */
const REMEMBER_SECONDS = 60;
/** Maximum length of the event stream that carries replies and deltas, including their texts; it is read immediately. */
const EVENTS_KEPT = 20_000;
/** Interval of checks that an entry is still being worked on. */
const CHECK_MS = 2_000;
/** Requests of a pool that no worker has taken. */
const MAX_WAITING = 500;

type Entry = QueueJob<SamplePayload, SampleReply>;

/** Waits for the end of one entry. */
interface Watcher {
  onProgress(progress: SampleProgress): void;
  onReply(reply: SampleReply): void;
  onFailed(reason: string): void;
}

interface Channel {
  queue: Queue<SamplePayload, SampleReply>;
  events: QueueEvents;
  /** By entry. */
  watchers: Map<string, Watcher>;
}

/** Calls the workers of a pool through BullMQ: an entry's progress carries the text as it grows, and its return value is the reply. */
export class SampleQueue implements SamplePort {
  readonly #channels: PerPool<Channel>;

  constructor(
    redisUrl: string,
    private readonly store: Pick<JobStorePort, 'abandonSample'>,
    private readonly log: Logger,
  ) {
    this.#channels = new PerPool({
      open: (pool) => openChannel(redisUrl, pool, log),
      close: ({ queue, events }) => Promise.all([queue.close(), events.close()]),
    });
  }

  sample(pool: string, payload: SamplePayload, call: SampleCall): Promise<SampleReply> {
    return this.#channels.use(pool, (channel) => this.#ask(pool, channel, payload, call));
  }

  /** Closes the connections. Idempotent. */
  close(): Promise<void> {
    return this.#channels.close();
  }

  async #ask(
    pool: string,
    { queue, events, watchers }: Channel,
    payload: SamplePayload,
    call: SampleCall,
  ): Promise<SampleReply> {
    const id = randomUUID();
    const waiting = new Waiting(pool, call);
    watchers.set(id, waiting);
    let entry: Entry | null = null;
    try {
      await queueAnswers(events.waitUntilReady());
      if ((await queueAnswers(queue.getWaitingCount())) >= MAX_WAITING)
        throw new ZerofleetError(
          'sample_queue_full',
          `${MAX_WAITING} requests wait for pool ${pool}; try again`,
        );
      const options = {
        jobId: id,
        removeOnComplete: { age: REMEMBER_SECONDS },
        removeOnFail: { age: REMEMBER_SECONDS },
      };
      entry = await queueAnswers(queue.add('sample', payload, options));
      waiting.check(entry, queue);
      return await waiting.reply;
    } catch (error) {
      this.log.warn({ err: error, pool, source: payload.source }, 'sample not answered');
      if (entry !== null) await this.#abandon(entry);
      throw error;
    } finally {
      waiting.close();
      watchers.delete(id);
    }
  }

  /** Removes an entry; one that a worker has taken cannot be removed, and the worker drops it. */
  async #abandon(entry: Entry): Promise<void> {
    await this.store.abandonSample(entry.id ?? '').catch(() => undefined);
    await entry.remove().catch(() => undefined);
  }
}

/** One request from its entry to its reply. */
class Waiting implements Watcher {
  readonly reply: Promise<SampleReply>;
  onReply!: (reply: SampleReply) => void;
  private reject!: (error: Error) => void;
  private checking: NodeJS.Timeout | null = null;
  /** Last sign of a worker, and since when the model is loading, by the monotonic clock. */
  private seen_at = performance.now();
  private loading_since: number | null = null;

  constructor(
    private readonly pool: string,
    private readonly call: SampleCall,
  ) {
    this.reply = new Promise((resolve, reject) => {
      this.onReply = resolve;
      this.reject = reject;
    });
    this.reply.catch(() => undefined);
    call.signal.addEventListener('abort', this.abort, { once: true });
    if (call.signal.aborted) this.abort();
  }

  onProgress(progress: SampleProgress): void {
    this.seen_at = performance.now();
    if ('deltas' in progress) this.call.onDeltas?.(progress.deltas);
    else if (progress.state === 'answering') this.call.onStart?.();
    this.loading_since = 'state' in progress && progress.state === 'loading' ? performance.now() : null;
  }

  onFailed(reason: string): void {
    this.reject(new ZerofleetError('workers_lost', `workers that answered were lost: ${reason}`));
  }

  /** Ends the wait when no worker works on the entry for too long, or the model takes too long to load. */
  check(entry: Entry, queue: Channel['queue']): void {
    const check = async () => {
      const now = performance.now();
      if (this.loading_since !== null && now - this.loading_since > this.call.loading_ms)
        return this.reject(
          new ZerofleetError('model_loading', 'a worker is loading the model; send the request again'),
        );
      const found = await queue.getJob(entry.id ?? '');
      if (found === undefined) return this.onFailed('its entry is gone');
      // `isCompleted` would read the state anew, and could be true while `found` has no reply yet.
      if (found.finishedOn !== undefined)
        return found.returnvalue === null
          ? this.onFailed(found.failedReason)
          : this.onReply(found.returnvalue);
      if (await found.isActive()) this.seen_at = now;
      if (now - this.seen_at > this.call.timeout_ms) this.reject(this.timeout());
    };
    const interval = Math.min(CHECK_MS, this.call.timeout_ms, this.call.loading_ms);
    this.checking = setInterval(() => void check().catch(() => undefined), interval);
  }

  close(): void {
    if (this.checking !== null) clearInterval(this.checking);
    this.call.signal.removeEventListener('abort', this.abort);
  }

  private readonly abort = () => this.reject(this.call.signal.reason);

  private timeout(): ZerofleetError {
    return new ZerofleetError(
      'sample_timeout',
      `no worker of pool ${this.pool} answered in time; request fewer tokens, or check that the pool has a worker`,
    );
  }
}

function queueAnswers<T>(call: Promise<T>): Promise<T> {
  return call.catch((error: unknown) => {
    throw new ZerofleetError('job_store_unavailable', 'the queue does not answer', { cause: error });
  });
}

function openChannel(redisUrl: string, pool: string, log: Logger): Channel {
  const connection = (purpose: 'commands' | 'queue') => ({
    connection: redisOptions(redisUrl, purpose) as ConnectionOptions,
    prefix: REDIS_PREFIX,
  });
  const name = sampleQueueName(pool);
  const channel: Channel = {
    queue: new Queue(name, { ...connection('commands'), streams: { events: { maxLen: EVENTS_KEPT } } }),
    events: new QueueEvents(name, connection('queue')),
    watchers: new Map(),
  };
  const { events, watchers } = channel;
  events.on('progress', ({ jobId, data }) => watchers.get(jobId)?.onProgress(data as SampleProgress));
  events.on('completed', ({ jobId, returnvalue }) =>
    watchers.get(jobId)?.onReply(returnvalue as unknown as SampleReply),
  );
  events.on('failed', ({ jobId, failedReason }) => watchers.get(jobId)?.onFailed(failedReason));
  // Without a listener an error event would end the process; calls report their own failure.
  for (const part of [channel.queue, events] as Queue[]) {
    part.on('error', (error) => log.warn({ err: error, pool }, 'sample queue connection'));
  }
  return channel;
}
