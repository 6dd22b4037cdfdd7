/** The log of a webhook's messages. */
import t from 'tap';
import { ulid } from 'ulid';
import type { Webhook, WebhookMessage } from '../../contracts/index.js';
import { startTestRedis } from '../testing/redis.js';
import { openJobStore } from './index.js';

const server = await startTestRedis();
t.teardown(() => server.stop());

t.test('the log keeps the newest 500 messages', async (t) => {
  const store = await openJobStore({ url: server.url });
  t.teardown(() => store.close());
  const webhook = { id: `wh_${ulid()}` } as Webhook;
  await store.createWebhook('default', webhook, { secret: 'whsec_x', created_at: '', expires_at: null });
  const ids = Array.from({ length: 502 }, (_, i) => `dlv_${String(i).padStart(4, '0')}`);
  for (const id of ids) {
    const message = { type: 'job.state' } as WebhookMessage;
    await store.addDelivery({ id, webhook_id: webhook.id, message_id: id, message, created_at: '' });
  }
  const known = await Promise.all(ids.map((id) => store.getDelivery(webhook.id, id)));
  t.same(known.slice(0, 2), [null, null]);
  t.ok(known.slice(2).every((delivery, i) => delivery?.id === ids[i + 2]));
  const newest = await store.listDeliveries('default', webhook.id, { limit: 2 });
  t.match(newest?.data, [{ id: ids[501] }, { id: ids[500] }]);
});
