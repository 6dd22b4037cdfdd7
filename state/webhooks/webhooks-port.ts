/**
 * The port of webhooks: subscriptions to events, and the log of messages.
 *
 * At-least-once: an event and its entry in the webhook outbox are written atomically, and so are a new round of a message and its entry.
 * The relay (webhook-relay.ts) delivers each entry at least once.
 *
 * Excluded: sending. The sender records each attempt here.
 */
import type { Delivery, DeliveryAttempt, Page, Webhook, WebhookMessage } from '../../contracts/index.js';
import type { PageRequest } from '../core/paging.js';

/** Signing secret of messages. Stored in plain text: unlike an API key it is needed again. */
export interface WebhookSecret {
  /** `whsec_` and base64. */
  secret: string;
  created_at: string;
  /** Null for the newest secret. */
  expires_at: string | null;
}

/** Configuration of a webhook; the other fields result from its use. */
export type WebhookDocument = Omit<Webhook, 'secrets' | 'failing_since'>;

/** A webhook in the form that the sender needs. */
export interface WebhookTarget {
  project: string;
  webhook: Webhook;
  /** Secrets that sign now, newest first. */
  secrets: string[];
}

export interface WebhookFilter extends PageRequest {
  id_prefix?: string;
  url?: string;
}

/** An event on its way to the webhooks of its project. */
export interface WebhookEvent {
  kind: 'event';
  /** Id of the outbox entry, unique. */
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

/** Initial fields of a message. */
export type NewDelivery = Pick<Delivery, 'id' | 'webhook_id' | 'message_id' | 'message' | 'created_at'>;

/** Round of a message: a delivery with all its retries. */
export interface DeliveryRound {
  webhook_id: string;
  delivery_id: string;
  round: number;
}

export interface CountedDelivery {
  /** Position among the pending messages of the project, with fair turns among webhooks; 0: it must not be sent any more. */
  turn: number;
  /** The last attempt to send this webhook a message failed. */
  failing: boolean;
  /** Rounds that must not be sent any more, as `<delivery_id>-<round>`. */
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
  /** Returns null when the project has no such webhook. */
  getWebhook(project: string, webhookId: string): Promise<Webhook | null>;
  /** Newest first. */
  listWebhooks(project: string, filter?: WebhookFilter): Promise<Page<Webhook>>;
  /** Deletes a webhook and its log. Returns false when the project has no such webhook. */
  deleteWebhook(project: string, webhookId: string): Promise<boolean>;
  /**
   * Replaces a webhook with the result of `change`, which may be called more than once; secrets stay. Returns null when the project has
   * no such webhook.
   */
  updateWebhook(
    project: string,
    webhookId: string,
    change: (before: Webhook) => Webhook,
  ): Promise<Webhook | null>;
  /**
   * Adds a new secret; the previous one signs as well until `until`, older ones no longer. Returns null when the project has no such
   * webhook.
   */
  rotateWebhookSecret(
    project: string,
    webhookId: string,
    next: { secret: WebhookSecret; until: string },
  ): Promise<Webhook | null>;
  /** Returns all webhooks of a project. */
  webhooksOf(project: string): Promise<Webhook[]>;
  /** Returns null when the webhook was deleted. */
  webhookTarget(webhookId: string): Promise<WebhookTarget | null>;

  /** Puts a message into the log, once. Returns false when the webhook is gone. */
  addDelivery(delivery: NewDelivery): Promise<boolean>;
  /** Puts a message into the log and queues it. Returns false when the project has no such webhook. */
  sendDelivery(project: string, delivery: NewDelivery): Promise<boolean>;
  /**
   * Counts a message as pending, until an attempt leaves it in another state than `pending`. Repeating it counts the message once.
   * Messages that have left the log, and the oldest of a project with too many pending messages, are given up: they leave the log as
   * well.
   */
  countDelivery(project: string, round: DeliveryRound): Promise<CountedDelivery>;
  /**
   * Records an attempt, unless the message is being sent again or has left the log.
   * @returns the time (RFC 3339) since which the webhook's receiver has accepted no message; null when the last message was accepted
   */
  recordAttempt(record: AttemptRecord): Promise<string | null>;
  /** Returns null when the log of this webhook has no such message. */
  getDelivery(webhookId: string, deliveryId: string): Promise<Delivery | null>;
  /** Lists messages, newest first; null when the project has no such webhook. */
  listDeliveries(project: string, webhookId: string, page?: PageRequest): Promise<Page<Delivery> | null>;
  /** Queues a message of the log again; a pending message is left unchanged. Returns null when it does not exist. */
  requestRedelivery(project: string, webhookId: string, deliveryId: string): Promise<Delivery | null>;
}
