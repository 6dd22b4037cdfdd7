import type { Delivery, DeliveryAttempt, Page } from '../../contracts/index.js';
import { redisCall, type StoreContext } from '../core/context.js';
import { readPage } from '../core/listing.js';
import type { PageRequest } from '../core/paging.js';

/** Initial fields of a message. */
export type NewDelivery = Pick<Delivery, 'id' | 'webhook_id' | 'message_id' | 'message' | 'created_at'>;

/** Round of a message: a delivery with all its retries. */
export interface DeliveryRound {
  webhook_id: string;
  delivery_id: string;
  round: number;
}

interface CountedDelivery {
  /**
   * Position among the pending messages of the project, with fair turns among webhooks; 0: it must not be sent any
   * more.
   */
  position: number;
  /** The last attempt to send this webhook a message failed. */
  failing: boolean;
  /** Rounds that must not be sent any more, as `<delivery_id>-<round>`. */
  given_up: string[];
}

interface AttemptRecord extends DeliveryRound {
  attempt: DeliveryAttempt;
  state: Delivery['state'];
  next_attempt_at: string | null;
}

/** Messages that the log of one webhook keeps, delivered or not. */
const KEEP_DELIVERIES = 1000;
/** Maximum number of pending messages of a project. */
const KEEP_PENDING = 5000;
/** Attempts that the log keeps per message. */
const KEEP_ATTEMPTS = 20;

/** @param belongs returns whether the project has this webhook */
export function webhookDeliveries(
  context: StoreContext,
  belongs: (project: string, webhookId: string) => Promise<boolean>,
) {
  const { prefix, commands } = context;
  const indexOf = (webhookId: string) => `${prefix}:webhook:${webhookId}:deliveries`;

  async function getDelivery(webhookId: string, id: string): Promise<Delivery | null> {
    const found = await readDelivery(context, id);
    return found?.webhook_id === webhookId ? found : null;
  }

  async function add(delivery: NewDelivery, options: { project?: string; send?: true } = {}) {
    const [added] = await commands.run('add_delivery', {
      webhook_id: delivery.webhook_id,
      delivery_id: delivery.id,
      document: JSON.stringify(delivery),
      keep: KEEP_DELIVERIES,
      ...options,
    });
    return added === '1';
  }

  return {
    /** Puts a message into the log, once. Returns false when the webhook is gone. */
    addDelivery: (delivery: NewDelivery): Promise<boolean> => add(delivery),
    /** Puts a message into the log and queues it. Returns false when the project has no such webhook. */
    sendDelivery: (project: string, delivery: NewDelivery): Promise<boolean> =>
      add(delivery, { project, send: true }),

    /**
     * Counts a message as pending, until an attempt leaves it in another state than `pending`. Repeating it
     * counts the message once. Messages that have left the log, and the oldest of a project with too many
     * pending messages, are given up: they leave the log as well.
     */
    async countDelivery(
      project: string,
      { webhook_id, delivery_id, round }: DeliveryRound,
    ): Promise<CountedDelivery> {
      const call = { project, webhook_id, delivery_id, round, keep: KEEP_PENDING };
      const [position, failing, ...givenUp] = await commands.run('count_delivery', call);
      return { position: Number(position), failing: failing === 1, given_up: givenUp as string[] };
    },

    /**
     * Records an attempt, unless the message is being sent again or has left the log.
     * @returns the time (RFC 3339) since which the webhook's receiver has accepted no message; null when the
     *   last message was accepted
     */
    async recordAttempt({
      webhook_id,
      delivery_id,
      round,
      attempt,
      state,
      next_attempt_at,
    }: AttemptRecord): Promise<string | null> {
      const { at, error } = attempt;
      const [failingSince] = await commands.run('record_delivery', {
        webhook_id,
        delivery_id,
        round,
        attempt: JSON.stringify(attempt),
        at,
        state,
        next_attempt_at: next_attempt_at ?? '',
        failing: error === 'webhook_disabled' ? undefined : error !== null,
        keep: KEEP_ATTEMPTS,
      });
      return String(failingSince) || null;
    },

    /** Returns null when the log of this webhook has no such message. */
    getDelivery,

    /** Lists messages, newest first; null when the project has no such webhook. */
    async listDeliveries(
      project: string,
      webhookId: string,
      page: PageRequest = {},
    ): Promise<Page<Delivery> | null> {
      if (!(await belongs(project, webhookId))) return null;
      return readPage(context, {
        indexes: [indexOf(webhookId)],
        page,
        load: (ids) => Promise.all(ids.map((id) => readDelivery(context, id))),
      });
    },

    /**
     * Queues a message of the log again; a pending message is left unchanged. Returns null when it does not
     * exist.
     */
    async requestRedelivery(project: string, webhookId: string, id: string): Promise<Delivery | null> {
      const call = { webhook_id: webhookId, project, delivery_id: id };
      const [asked] = await commands.run('request_redelivery', call);
      return asked === '1' ? getDelivery(webhookId, id) : null;
    },
  };
}

function isState(text: string | undefined): text is Delivery['state'] {
  return text === 'pending' || text === 'succeeded' || text === 'failed';
}

/** Returns null for a message that has left the log meanwhile. */
async function readDelivery({ redis, prefix }: StoreContext, id: string): Promise<Delivery | null> {
  const key = `${prefix}:delivery:${id}`;
  const [{ document, state, next_attempt_at }, attempts] = await Promise.all([
    redisCall(redis.hgetall(key)),
    redisCall(redis.lrange(`${key}:attempts`, 0, -1)),
  ]);
  if (document === undefined || !isState(state)) return null;
  const known: NewDelivery = JSON.parse(document);
  const parsed = attempts.map((text): DeliveryAttempt => JSON.parse(text));
  return { ...known, state, next_attempt_at: next_attempt_at || null, attempts: parsed };
}
