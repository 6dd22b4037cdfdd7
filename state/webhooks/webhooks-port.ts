/**
 * The port of webhooks: who is told of events, and the log of what was sent.
 *
 * Nothing is lost: an event and its entry in the webhook outbox are written in one step, and so are a new round of a message
 * and its entry. The relay (webhook-relay.ts) hands each entry on at least once.
 *
 * Excluded: sending. Whoever sends notes each attempt here.
 */
import type { Delivery, DeliveryAttempt, Page, Webhook, WebhookMessage } from '../../contracts/index.js';
import type { PageRequest } from '../core/paging.js';

/** What signs messages. Kept as it is: unlike an API key it is needed again. */
export interface WebhookSecret {
  /** `whsec_` and base64. */
  secret: string;
  created_at: string;
  /** Null for the newest. */
  expires_at: string | null;
}

/** What is decided about a webhook; the rest of it comes of its use. */
export type WebhookDocument = Omit<Webhook, 'secrets' | 'failing_since'>;

/** A webhook as whoever sends needs it. */
export interface WebhookTarget {
  project: string;
  webhook: Webhook;
  /** Those that sign now, the newest first. */
  secrets: string[];
}

export interface WebhookFilter extends PageRequest {
  id_prefix?: string;
  url?: string;
}

/** An event that was written, on its way to the webhooks of its project. */
export interface WebhookEvent {
  kind: 'event';
  /** Of the entry of the outbox: no two entries have the same. */
  entry: string;
  project: string;
  /** Webhooks that the job names. */
  notify: string[];
  message: WebhookMessage;
}

/** A message of the log that is to be sent again. */
export interface Redelivery extends DeliveryRound {
  kind: 'redelivery';
}

export type WebhookOutboxEntry = WebhookEvent | Redelivery;

/** What is known of a message from the start. */
export type NewDelivery = Pick<Delivery, 'id' | 'webhook_id' | 'message_id' | 'message' | 'created_at'>;

/** One time that a message is to be sent, with all tries. */
export interface DeliveryRound {
  webhook_id: string;
  delivery_id: string;
  round: number;
}

export interface CountedDelivery {
  /** Its place among the messages of its project that are under way, when webhooks take turns; 0: it is not to be sent any more. */
  turn: number;
  /** The last attempt to send the webhook anything failed. */
  failing: boolean;
  /** Rounds that are not to be sent any more, as `<delivery_id>-<round>`. */
  given_up: string[];
}

export interface AttemptRecord extends DeliveryRound {
  attempt: DeliveryAttempt;
  state: Delivery['state'];
  next_attempt_at: string | null;
}

export interface Webhooks {
  /** @throws `too_many_webhooks` */
  createWebhook(project: string, webhook: WebhookDocument, secret: WebhookSecret): Promise<Webhook>;
  /** Null when the project has none of this id. */
  getWebhook(project: string, webhookId: string): Promise<Webhook | null>;
  /** Newest first. */
  listWebhooks(project: string, filter?: WebhookFilter): Promise<Page<Webhook>>;
  /** With its log. False when the project has none of this id. */
  deleteWebhook(project: string, webhookId: string): Promise<boolean>;
  /** Makes of it what `change` makes of it, which may be asked more than once; secrets stay. Null when the project has none of this id. */
  updateWebhook(
    project: string,
    webhookId: string,
    change: (before: Webhook) => Webhook,
  ): Promise<Webhook | null>;
  /**
   * Gives it a new secret; the one of before signs until `until` as well, one that is older no longer.
   * Null when the project has none of this id.
   */
  rotateWebhookSecret(
    project: string,
    webhookId: string,
    next: { secret: WebhookSecret; until: string },
  ): Promise<Webhook | null>;
  /** All webhooks of a project. */
  webhooksOf(project: string): Promise<Webhook[]>;
  /** Null when it was deleted. */
  webhookTarget(webhookId: string): Promise<WebhookTarget | null>;

  /** Puts a message into the log, once. False when the webhook is gone. */
  addDelivery(delivery: NewDelivery): Promise<boolean>;
  /** Puts a message into the log and has it sent. False when the project has no such webhook. */
  sendDelivery(project: string, delivery: NewDelivery): Promise<boolean>;
  /**
   * Counts a message as under way, until an attempt leaves it in another state than `pending`. Repeating it counts it once. Messages that
   * have left the log, and the oldest of a project that has too many under way, are given up: they leave the log as well.
   */
  countDelivery(project: string, round: DeliveryRound): Promise<CountedDelivery>;
  /**
   * Notes an attempt, unless the message is being sent anew or has left the log.
   * @returns since when (RFC 3339) nothing has been taken by the webhook's receiver; null when the last message was
   */
  recordAttempt(record: AttemptRecord): Promise<string | null>;
  /** Null when the log of this webhook has no such message. */
  getDelivery(webhookId: string, deliveryId: string): Promise<Delivery | null>;
  /** Newest first; null when the project has no such webhook. */
  listDeliveries(project: string, webhookId: string, page?: PageRequest): Promise<Page<Delivery> | null>;
  /** Has a message of the log sent again; one that is pending is left as it is. Null when there is none. */
  requestRedelivery(project: string, webhookId: string, deliveryId: string): Promise<Delivery | null>;
}
