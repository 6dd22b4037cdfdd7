import type { Delivery, DeliveryAttempt } from '../../contracts/index.js';
import { redisCall, type StoreContext, serverTime } from './context.js';
import { readPage } from './listing.js';
import type { NewDelivery, Webhooks } from './webhooks-port.js';

/** Messages of one webhook that the log keeps, and attempts of one message. */
const KEEP_DELIVERIES = 500;
const KEEP_ATTEMPTS = 20;
/** Longer than any message is tried; one that a crash left uncounted is forgotten then. */
const DELIVERY_MS = 7 * 24 * 3600 * 1000;

type DeliveryLog = Pick<
  Webhooks,
  | 'addDelivery'
  | 'sendDelivery'
  | 'countDelivery'
  | 'settleDelivery'
  | 'recordAttempt'
  | 'getDelivery'
  | 'listDeliveries'
  | 'requestRedelivery'
>;

/** @param belongs whether the project has this webhook */
export function webhookDeliveries(
  context: StoreContext,
  belongs: (project: string, webhookId: string) => Promise<boolean>,
): DeliveryLog {
  const { redis, prefix, commands } = context;
  const pendingOf = (project: string) => `${prefix}:project:${project}:deliveries`;
  const indexOf = (webhookId: string) => `${prefix}:webhook:${webhookId}:deliveries`;

  /** Null for one that has left the log meanwhile. */
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

    async countDelivery(project, id) {
      const key = pendingOf(project);
      const now = await serverTime(context);
      const counting = redis
        .multi()
        .zremrangebyscore(key, '-inf', now - DELIVERY_MS)
        .zadd(key, now, id)
        .zcard(key);
      const replies = await redisCall(counting.exec());
      return Number(replies?.at(-1)?.[1] ?? 0);
    },

    async settleDelivery(project, id) {
      await redisCall(redis.zrem(pendingOf(project), id));
    },

    async recordAttempt({ delivery_id, round, attempt, state, next_attempt_at }) {
      await commands.run('record_delivery', {
        delivery_id,
        round,
        attempt: JSON.stringify(attempt),
        state,
        next_attempt_at: next_attempt_at ?? '',
        keep: KEEP_ATTEMPTS,
      });
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
