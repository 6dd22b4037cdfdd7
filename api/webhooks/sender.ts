/**
 * Sends messages to webhooks: entries of the webhook outbox become entries of a BullMQ queue, whose workers POST them and try
 * again for about three days. Every API process runs one; Redis shares the work out.
 */
import { type ConnectionOptions, type Job, Queue, UnrecoverableError, Worker } from 'bullmq';
import {
  type Delivery,
  type DeliveryAttempt,
  REDIS_PREFIX,
  webhookQueueNames,
} from '../../contracts/index.js';
import type { NewDelivery, Redelivery, WebhookOutboxEntry, Webhooks } from '../../platform/job-store/port.js';
import type { Logger } from '../../platform/logging.js';
import { redisOptions } from '../../platform/redis/connect.js';
import { projectVersion } from '../version.js';
import type { AddressPolicy } from './addresses.js';
import { deliveryOf, wants } from './messages.js';
import { post, type Resolve, resolveByDns } from './post.js';
import { signedHeaders } from './signature.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

export interface SenderTiming {
  /** Between an attempt and the next. */
  retry_delays_ms: readonly number[];
  /** For one attempt. */
  timeout_ms: number;
}

/** As Standard Webhooks recommends. */
const DEFAULT_TIMING: SenderTiming = {
  retry_delays_ms: [
    5 * SECOND,
    5 * MINUTE,
    30 * MINUTE,
    2 * HOUR,
    5 * HOUR,
    10 * HOUR,
    14 * HOUR,
    20 * HOUR,
    24 * HOUR,
  ],
  timeout_ms: 15 * SECOND,
};

/** Of each queue at once, in one process: a receiver that does not answer holds up no other. */
const CONCURRENCY = 100;
/**
 * Messages of a project that are under way in the first queue. All others of it wait in the second, in which the n-th of one project comes
 * before the n+1st of another: a project of any number of messages that nobody takes keeps few places, and no other project waits for it.
 */
const FIRST_OF_PROJECT = 20;
/** The largest that BullMQ has; the smaller, the sooner. */
const MAX_PRIORITY = 2 ** 21;
/** How long BullMQ remembers what is done: within this time a second entry of the same message is none. */
const REMEMBER_SECONDS = 3600;
/** A process that is killed while it sends may be followed by any number of others. */
const MAX_STALLED = 1_000_000;

/** The message itself travels along, so that the bounded log may forget it before it was sent. */
interface Payload {
  project: string;
  webhook_id: string;
  delivery_id: string;
  round: number;
  message_id: string;
  body: string;
}

/** One of the queues and what empties it. */
interface Lane {
  queue: Queue<Payload>;
  worker: Worker<Payload>;
}

export interface WebhookSenderOptions {
  redisUrl: string;
  store: Webhooks;
  policy: AddressPolicy;
  log: Logger;
  resolve?: Resolve;
  timing?: SenderTiming;
  /** Told of every attempt. */
  onAttempt?(state: Delivery['state'], attempt: DeliveryAttempt): void;
}

export class WebhookSender {
  readonly #options: WebhookSenderOptions;
  readonly #timing: SenderTiming;
  readonly #first: Lane;
  readonly #others: Lane;

  constructor(options: WebhookSenderOptions) {
    this.#options = options;
    this.#timing = options.timing ?? DEFAULT_TIMING;
    this.#first = this.#open(webhookQueueNames.first);
    this.#others = this.#open(webhookQueueNames.others);
  }

  /**
   * Queues what an entry of the outbox asks for. The same entry again adds nothing while BullMQ remembers it.
   * @throws when Redis does not answer; the outbox keeps the entry
   */
  async deliver(entry: WebhookOutboxEntry): Promise<void> {
    if (entry.kind === 'redelivery') return this.#sendAgain(entry);
    const { store } = this.#options;
    for (const webhook of await store.webhooksOf(entry.project)) {
      if (!wants(webhook, entry)) continue;
      const delivery = deliveryOf(webhook, entry);
      if (await store.addDelivery(delivery)) await this.#enqueue(entry.project, delivery, 1);
    }
  }

  /** Waits for the attempts that are under way. Idempotent. */
  async close(): Promise<void> {
    const lanes = [this.#first, this.#others];
    await Promise.all(lanes.map(({ worker }) => worker.close()));
    await Promise.all(lanes.map(({ queue }) => queue.close()));
  }

  #open(name: string): Lane {
    const { redisUrl, log } = this.#options;
    // The same options; BullMQ declares an older edition of their type.
    const connection = (purpose: 'commands' | 'queue') =>
      redisOptions(redisUrl, purpose) as ConnectionOptions;
    const queue = new Queue<Payload>(name, { connection: connection('commands'), prefix: REDIS_PREFIX });
    const worker = new Worker<Payload>(name, (entry) => this.#send(entry), {
      connection: connection('queue'),
      prefix: REDIS_PREFIX,
      concurrency: CONCURRENCY,
      maxStalledCount: MAX_STALLED,
      settings: { backoffStrategy: (attemptsMade) => this.#delayAfter(attemptsMade) },
    });
    // Without a listener an error event would end the process.
    const warn = (error: Error) => log.warn({ err: error }, 'webhook queue');
    queue.on('error', warn);
    worker.on('error', warn);
    return { queue, worker };
  }

  async #sendAgain({ webhook_id, delivery_id, round }: Redelivery): Promise<void> {
    const { store } = this.#options;
    const delivery = await store.getDelivery(webhook_id, delivery_id);
    const target = await store.webhookTarget(webhook_id);
    if (delivery !== null && target !== null) await this.#enqueue(target.project, delivery, round);
  }

  async #enqueue(
    project: string,
    { id, webhook_id, message_id, message }: NewDelivery,
    round: number,
  ): Promise<void> {
    const payload = {
      project,
      webhook_id,
      delivery_id: id,
      round,
      message_id,
      body: JSON.stringify(message),
    };
    const under_way = await this.#options.store.countDelivery(project, id);
    const is_first = under_way <= FIRST_OF_PROJECT;
    const { queue } = is_first ? this.#first : this.#others;
    await queue.add('message', payload, {
      jobId: `${id}-${round}`,
      ...(!is_first && { priority: Math.min(under_way, MAX_PRIORITY) }),
      attempts: this.#timing.retry_delays_ms.length + 1,
      backoff: { type: 'custom' },
      removeOnComplete: { age: REMEMBER_SECONDS },
      removeOnFail: { age: REMEMBER_SECONDS },
    });
  }

  #delayAfter(attemptsMade: number): number {
    return this.#timing.retry_delays_ms[attemptsMade - 1] ?? 0;
  }

  /** @throws to have BullMQ try again, or not any more */
  async #send({ data, attemptsMade }: Job<Payload>): Promise<void> {
    const { store, onAttempt } = this.#options;
    const target = await store.webhookTarget(data.webhook_id);
    if (target === null) return store.settleDelivery(data.project, data.delivery_id);
    const { enabled, url } = target.webhook;
    const attempt = enabled
      ? await this.#attempt(url, target.secrets, data)
      : ({ at: new Date().toISOString(), status: null, error: 'webhook_disabled', duration_ms: 0 } as const);
    const tried = attemptsMade + 1;
    const isLast = isHopeless(attempt) || tried > this.#timing.retry_delays_ms.length;
    const state = attempt.error === null ? 'succeeded' : isLast ? 'failed' : 'pending';
    const next_attempt_at =
      state === 'pending' ? new Date(Date.now() + this.#delayAfter(tried)).toISOString() : null;
    await store.recordAttempt({
      delivery_id: data.delivery_id,
      round: data.round,
      attempt,
      state,
      next_attempt_at,
    });
    if (state !== 'pending') await store.settleDelivery(data.project, data.delivery_id);
    onAttempt?.(state, attempt);
    if (state === 'failed') throw new UnrecoverableError(attempt.error ?? '');
    if (state === 'pending') throw new Error(attempt.error ?? '');
  }

  async #attempt(
    url: string,
    secrets: readonly string[],
    { message_id, body }: Payload,
  ): Promise<DeliveryAttempt> {
    const { policy, resolve = resolveByDns } = this.#options;
    const at = new Date();
    const timestamp = Math.floor(at.getTime() / SECOND);
    const headers = {
      'content-type': 'application/json',
      'user-agent': `zerofleet/${projectVersion()}`,
      ...signedHeaders(secrets, { id: message_id, timestamp, body }),
    };
    const result = await post(
      url,
      { headers, body },
      { policy, resolve, timeoutMs: this.#timing.timeout_ms },
    );
    const refused = result.status !== null && (result.status < 200 || result.status > 299);
    return {
      at: at.toISOString(),
      status: result.status,
      error: refused ? 'refused_by_receiver' : result.error,
      duration_ms: Date.now() - at.getTime(),
    };
  }
}

/** An address that may not be reached will not be allowed by asking often, and whoever disables a webhook wants silence. */
function isHopeless({ error }: DeliveryAttempt): boolean {
  return error === 'address_refused' || error === 'webhook_disabled';
}
