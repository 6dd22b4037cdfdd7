import type { Delivery, DeliveryAttempt } from '../../contracts/index.js';
import { redisCall, type StoreContext } from '../core/context.js';
import { readPage } from '../core/listing.js';
import type { NewDelivery, Webhooks } from './webhooks-port.js';

/** Messages that the log of one webhook keeps, delivered or not. */
const KEEP_DELIVERIES = 1000;
/** Maximum number of pending messages of a project. */
const KEEP_PENDING = 5000;
/** Attempts that the log keeps per message. */
const KEEP_ATTEMPTS = 20;

type DeliveryLog = Pick<
  Webhooks,
  | 'addDelivery'
  | 'sendDelivery'
  | 'countDelivery'
  | 'recordAttempt'
  | 'getDelivery'
  | 'listDeliveries'
  | 'requestRedelivery'
>;

/** @param belongs returns whether the project has this webhook */
export function webhookDeliveries(
  context: StoreContext,
  belongs: (project: string, webhookId: string) => Promise<boolean>,
): DeliveryLog {
  const { redis, prefix, commands } = context;
  const indexOf = (webhookId: string) => `${prefix}:webhook:${webhookId}:deliveries`;

  /** Returns null for a message that has left the log meanwhile. */
  async function read(id: string): Promise<Delivery | null> {
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

  async function getDelivery(webhookId: string, id: string): Promise<Delivery | null> {
    const found = await read(id);
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
    addDelivery: (delivery) => add(delivery),
    sendDelivery: (project, delivery) => add(delivery, { project, send: true }),

    async countDelivery(project, { webhook_id, delivery_id, round }) {
      const call = { project, webhook_id, delivery_id, round, keep: KEEP_PENDING };
      const [turn, failing, ...given_up] = await commands.run('count_delivery', call);
      return { turn: Number(turn), failing: failing === 1, given_up: given_up as string[] };
    },

    async recordAttempt({ webhook_id, delivery_id, round, attempt, state, next_attempt_at }) {
      const { at, error } = attempt;
      const [failing_since] = await commands.run('record_delivery', {
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
      return String(failing_since) || null;
    },

    getDelivery,

    async listDeliveries(project, webhookId, page = {}) {
      if (!(await belongs(project, webhookId))) return null;
      return readPage(context, {
        indexes: [indexOf(webhookId)],
        page,
        load: (ids) => Promise.all(ids.map(read)),
      });
    },

    async requestRedelivery(project, webhookId, id) {
      const call = { webhook_id: webhookId, project, delivery_id: id };
      const [asked] = await commands.run('request_redelivery', call);
      return asked === '1' ? getDelivery(webhookId, id) : null;
    },
  };
}

function isState(text: string | undefined): text is Delivery['state'] {
  return text === 'pending' || text === 'succeeded' || text === 'failed';
}
