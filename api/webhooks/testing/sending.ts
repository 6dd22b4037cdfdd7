import type { Test } from 'tap';
import type { Delivery, DeliveryAttempt, WebhookSpec, WebhookWithSecret } from '../../../contracts/index.js';
import { createLogger } from '../../../platform/logging/logging.js';
import { AddressPolicy } from '../../../platform/outgoing/addresses.js';
import { startWebhookRelay, type WebhookOutboxEntry } from '../../../state/index.js';
import { startTestStack } from '../../testing/stack.js';
import { WebhookSender, type WebhookSenderOptions } from '../sender.js';
import { startReceiver } from './receiver.js';

const LOOPBACK = ['127.0.0.0/8'];
export const log = createLogger({ level: 'silent', name: 'test' });

/** An API with a receiver on loopback, and a sender. */
export async function setUp(t: Test) {
  const stack = await startTestStack({ webhookAllow: LOOPBACK });
  const receiver = await startReceiver();
  t.teardown(async () => {
    await receiver.close();
    await stack.close();
  });
  const { store, redis, request } = stack;

  /** Starts sending like an API process. */
  const startSending = async (changes: Partial<WebhookSenderOptions> = {}) => {
    const policy = new AddressPolicy(LOOPBACK);
    const timing = { retry_delays_ms: [1, 1], timeout_ms: 60_000 };
    const sender = new WebhookSender({ redisUrl: redis.url, store, policy, log, timing, ...changes });
    const deliver = (entry: WebhookOutboxEntry) => sender.deliver(entry);
    const relay = startWebhookRelay({ url: redis.url, deliver, log, retryAfterMs: 50 });
    const stop = async () => {
      await relay.stop();
      await sender.close();
    };
    t.teardown(stop);
    return { sender, stop };
  };
  const createWebhook = async (changes: Partial<WebhookSpec> = {}) => {
    const payload = { url: receiver.url, ...changes };
    const reply = await request({ method: 'POST', url: '/v1/webhooks', payload });
    t.equal(reply.statusCode, 201, reply.body);
    return reply.json<WebhookWithSecret>();
  };
  const deliveries = async (id: string) =>
    (await request({ url: `/v1/webhooks/${id}/deliveries?limit=100` })).json<{ data: Delivery[] }>().data;
  return { ...stack, receiver, startSending, createWebhook, deliveries };
}

/** Resolves with the first attempt that leaves its message in `state`. */
export function attemptsUntil(state: Delivery['state']) {
  const seen: DeliveryAttempt[] = [];
  let done: () => void = () => undefined;
  const reached = new Promise<void>((resolve) => {
    done = resolve;
  });
  const onAttempt: WebhookSenderOptions['onAttempt'] = (now, attempt) => {
    seen.push(attempt);
    if (now === state) done();
  };
  return { seen, reached, onAttempt };
}
