/**
 * Sends messages to webhooks: entries of the webhook outbox become entries of a BullMQ queue, whose workers POST them
 * and retry for about three days. Every API process runs one; Redis distributes the work. A message is stored only in
 * its webhook's log. So a message that the log has dropped is not sent, and the logs bound the memory of pending
 * messages.
 */
import { type ConnectionOptions, type Job, Queue, UnrecoverableError, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import {
  type Delivery,
  type DeliveryAttempt,
  REDIS_PREFIX,
  webhookQueueNames,
} from '../../contracts/index.js';
import type { Logger } from '../../platform/logging/logging.js';
import type { AddressPolicy } from '../../platform/outgoing/addresses.js';
import { post, type Resolve, resolveByDns } from '../../platform/outgoing/post.js';
import { signedHeaders } from '../../platform/outgoing/signature.js';
import { PROGRAM_VERSION } from '../../platform/process/version.js';
import { disconnectRedis, openRedis, redisOptions } from '../../platform/redis/connect.js';
import type { DeliveryRound, WebhookOutboxEntry, Webhooks, WebhookTarget } from '../../state/index.js';
import { deliveryOf, isSubscribed } from './messages.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

interface SenderTiming {
  /** Backoff between attempts. */
  retry_delays_ms: readonly number[];
  /** Timeout of one attempt. */
  timeout_ms: number;
}

/** Recommended by Standard Webhooks. */
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

/** Concurrent messages per queue and process: an unresponsive receiver delays no other. */
const CONCURRENCY = 100;
/**
 * Maximum number of pending messages of a project in the first queue, where its webhooks alternate. Further messages,
 * and those of a webhook whose last delivery failed, wait in the second queue. There the n-th message of one project
 * precedes the n+1st of another: an unresponsive receiver occupies few slots and delays neither other projects nor
 * other webhooks.
 */
const FIRST_OF_PROJECT = 20;
/** Each backoff is randomly extended by up to this fraction, so that messages that failed together are spread out. */
const JITTER = 0.25;
/** A webhook without a delivery for this time is disabled. */
const DISABLED_AFTER_MS = 72 * HOUR;
/** BullMQ's maximum; smaller is sooner. */
const MAX_PRIORITY = 2 ** 21;
/** Retention of finished entries in BullMQ: within this time a second entry for the same message is ignored. */
const REMEMBER_SECONDS = 3600;
/** Any number of processes may be killed while they send the message. */
const MAX_STALLED = 1_000_000;

/** One of the queues and its worker. */
interface QueueAndWorker {
  queue: Queue<DeliveryRound>;
  worker: Worker<DeliveryRound>;
}

/** Thrown after a failed attempt whose retry is scheduled. */
class RetryLater extends Error {
  constructor(
    error: string,
    readonly delayMs: number,
  ) {
    super(error);
  }
}

export interface WebhookSenderOptions {
  redisUrl: string;
  store: Webhooks;
  policy: AddressPolicy;
  log: Logger;
  resolve?: Resolve;
  timing?: SenderTiming;
  /** Called after every attempt. */
  onAttempt?(state: Delivery['state'], attempt: DeliveryAttempt): void;
}

export class WebhookSender {
  private readonly options: WebhookSenderOptions;
  private readonly timing: SenderTiming;
  /** Adds entries to both queues. */
  private readonly redis: Redis;
  private readonly first: QueueAndWorker;
  private readonly others: QueueAndWorker;

  constructor(options: WebhookSenderOptions) {
    this.options = options;
    this.timing = options.timing ?? DEFAULT_TIMING;
    this.redis = openRedis(options.redisUrl, 'commands', options.log);
    this.first = this.open(webhookQueueNames.first);
    this.others = this.open(webhookQueueNames.others);
  }

  /**
   * Queues the message of an outbox entry. Repeating an entry has no effect while BullMQ remembers it.
   * @throws when Redis does not answer; the outbox keeps the entry
   */
  async deliver(entry: WebhookOutboxEntry): Promise<void> {
    const { store } = this.options;
    if (entry.kind === 'redelivery') {
      const target = await store.webhookTarget(entry.webhook_id);
      if (target !== null) await this.enqueue(target.project, entry);
      return;
    }
    for (const webhook of await store.webhooksOf(entry.project)) {
      if (!isSubscribed(webhook, entry)) continue;
      const delivery = deliveryOf(webhook, entry);
      const round = { webhook_id: webhook.id, delivery_id: delivery.id, round: 1 };
      if (await store.addDelivery(delivery)) await this.enqueue(entry.project, round);
    }
  }

  /** Waits for attempts in progress. Idempotent. */
  async close(): Promise<void> {
    const lanes = [this.first, this.others];
    // While Redis does not answer, a worker that is not forced waits for it without end. Its entries are taken later.
    const isForced = await this.redis.ping().then(
      () => false,
      () => true,
    );
    await Promise.all(lanes.map(({ worker }) => worker.close(isForced)));
    await Promise.all(lanes.map(({ queue }) => queue.close()));
    await disconnectRedis(this.redis);
  }

  private open(name: string): QueueAndWorker {
    const { redisUrl, log } = this.options;
    const queue = new Queue<DeliveryRound>(name, {
      connection: this.redis as ConnectionOptions,
      prefix: REDIS_PREFIX,
    });
    const worker = new Worker<DeliveryRound>(name, (entry) => this.send(entry), {
      connection: redisOptions(redisUrl, 'queue') as ConnectionOptions,
      prefix: REDIS_PREFIX,
      concurrency: CONCURRENCY,
      maxStalledCount: MAX_STALLED,
      settings: {
        backoffStrategy: (attemptsMade, _type, error) =>
          error instanceof RetryLater ? error.delayMs : this.delayAfter(attemptsMade),
      },
    });
    // Without a listener an error event would end the process.
    const warn = (error: Error) => log.warn({ err: error }, 'webhook queue');
    queue.on('error', warn);
    worker.on('error', warn);
    return { queue, worker };
  }

  private async enqueue(project: string, { webhook_id, delivery_id, round }: DeliveryRound): Promise<void> {
    const payload = { webhook_id, delivery_id, round };
    const { position, failing, given_up } = await this.options.store.countDelivery(project, payload);
    for (const { queue } of [this.first, this.others])
      await Promise.all(given_up.map((entry) => queue.remove(entry)));
    if (position === 0) return;
    const isFirst = position <= FIRST_OF_PROJECT && !failing;
    const { queue } = isFirst ? this.first : this.others;
    await queue.add('message', payload, {
      jobId: `${delivery_id}-${round}`,
      ...(!isFirst && { priority: Math.min(position, MAX_PRIORITY) }),
      stackTraceLimit: 0,
      attempts: this.timing.retry_delays_ms.length + 1,
      backoff: { type: 'custom' },
      removeOnComplete: { age: REMEMBER_SECONDS },
      removeOnFail: { age: REMEMBER_SECONDS },
    });
  }

  private delayAfter(attemptsMade: number): number {
    const delayMs = this.timing.retry_delays_ms[attemptsMade - 1] ?? 0;
    return Math.round(delayMs * (1 + JITTER * Math.random()));
  }

  /** @throws to make BullMQ retry, or to stop retrying */
  private async send({ data, attemptsMade }: Job<DeliveryRound>): Promise<void> {
    const { store, onAttempt } = this.options;
    const target = await store.webhookTarget(data.webhook_id);
    const delivery = await store.getDelivery(data.webhook_id, data.delivery_id);
    // The webhook was deleted, or there are too many newer messages.
    if (target === null || delivery === null) return;
    const attempt = target.webhook.enabled
      ? await this.attempt(target, delivery)
      : ({ at: new Date().toISOString(), status: null, error: 'webhook_disabled', duration_ms: 0 } as const);
    const tried = attemptsMade + 1;
    const isLast = isPermanent(attempt) || tried > this.timing.retry_delays_ms.length;
    const state = attempt.error === null ? 'succeeded' : isLast ? 'failed' : 'pending';
    const delayMs = this.delayAfter(tried);
    const nextAttemptAt = state === 'pending' ? new Date(Date.now() + delayMs).toISOString() : null;
    const failingSince = await store.recordAttempt({
      ...data,
      attempt,
      state,
      next_attempt_at: nextAttemptAt,
    });
    if (failingSince !== null && Date.now() - Date.parse(failingSince) >= DISABLED_AFTER_MS)
      await this.disable(target, failingSince);
    onAttempt?.(state, attempt);
    if (state === 'failed') throw new UnrecoverableError(attempt.error ?? '');
    if (state === 'pending') throw new RetryLater(attempt.error ?? '', delayMs);
  }

  private async disable({ project, webhook }: WebhookTarget, failingSince: string): Promise<void> {
    const { store, log } = this.options;
    const disabled = { enabled: false, disabled_reason: 'not_delivered' as const };
    await store.updateWebhook(project, webhook.id, (before) => ({ ...before, ...disabled }));
    log.warn({ project, webhook_id: webhook.id, failing_since: failingSince }, 'webhook disabled');
  }

  private async attempt(
    { webhook: { url }, secrets }: WebhookTarget,
    delivery: Delivery,
  ): Promise<DeliveryAttempt> {
    const { policy, resolve = resolveByDns } = this.options;
    const { message_id, message } = delivery;
    const body = JSON.stringify(message);
    const at = new Date();
    const timestamp = Math.floor(at.getTime() / SECOND);
    const headers = {
      'content-type': 'application/json',
      'user-agent': `zerofleet/${PROGRAM_VERSION}`,
      ...signedHeaders(secrets, { id: message_id, timestamp, body }),
    };
    const result = await post(url, { headers, body }, { policy, resolve, timeoutMs: this.timing.timeout_ms });
    const refused = result.status !== null && (result.status < 200 || result.status > 299);
    return {
      at: at.toISOString(),
      status: result.status,
      error: refused ? 'refused_by_receiver' : result.error,
      duration_ms: Date.now() - at.getTime(),
    };
  }
}

/** True for failures without retry: retries do not make an address allowed, and a disabled webhook gets no messages. */
function isPermanent({ error }: DeliveryAttempt): boolean {
  return error === 'address_refused' || error === 'webhook_disabled';
}
