/** The log of a webhook's messages. */
import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import type { Webhook, WebhookMessage } from '../../contracts/index.js';
import { connectRedis, disconnectRedis } from '../../platform/redis/connect.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { CommandRunner } from '../core/command-runner.js';
import { openJobStore } from '../job-store.js';

const server = await startTestRedis();
t.teardown(() => server.stop());

t.test('the log keeps the newest 1000 messages', async (t) => {
  const store = await openJobStore({ url: server.url });
  t.teardown(() => store.close());
  const webhook = { id: `wh_${ulid()}` } as Webhook;
  await store.createWebhook('default', webhook, { secret: 'whsec_x', created_at: '', expires_at: null });
  const ids = Array.from({ length: 1002 }, (_, i) => `dlv_${String(i).padStart(4, '0')}`);
  for (const id of ids) {
    const message = { type: 'job.state' } as WebhookMessage;
    await store.addDelivery({ id, webhook_id: webhook.id, message_id: id, message, created_at: '' });
  }
  const known = await Promise.all(ids.map((id) => store.getDelivery(webhook.id, id)));
  t.same(known.slice(0, 2), [null, null]);
  t.ok(known.slice(2).every((delivery, i) => delivery?.id === ids[i + 2]));
  const newest = await store.listDeliveries('default', webhook.id, { limit: 2 });
  t.match(newest?.data, [{ id: ids[1001] }, { id: ids[1000] }]);
});

/** Creates three webhooks of a project. Returns a function that counts a message of one as pending. */
async function threeWebhooks(t: Test) {
  const prefix = `{${ulid()}}`;
  const store = await openJobStore({ url: server.url, prefix });
  const redis = await connectRedis(server.url, 'commands');
  t.teardown(async () => {
    await disconnectRedis(redis);
    await store.close();
  });
  const commands = new CommandRunner(redis, prefix);
  const ids = ['wh_0', 'wh_1', 'wh_2'];
  for (const id of ids)
    await store.createWebhook('default', { id } as Webhook, {
      secret: 'whsec_x',
      created_at: '',
      expires_at: null,
    });
  const count = async (webhookId: string, n: number, keep = 100) => {
    const id = `dlv_${n}`;
    const message = { type: 'job.state' } as WebhookMessage;
    await store.addDelivery({ id, webhook_id: webhookId, message_id: id, message, created_at: '' });
    const call = { project: 'default', webhook_id: webhookId, delivery_id: id, round: 1, keep };
    const [position, , ...givenUp] = await commands.run('count_delivery', call);
    return { position, given_up: givenUp };
  };
  return { store, commands, count };
}

t.test(
  'webhooks of a project take turns, and messages are pending until they are delivered or given up',
  async (t) => {
    const { store, count } = await threeWebhooks(t);
    t.match(
      [await count('wh_0', 1), await count('wh_0', 2), await count('wh_0', 2)],
      [{ position: 1 }, { position: 2 }, { position: 2 }],
    );
    t.match(
      await count('wh_1', 3),
      { position: 2 },
      'the first message of another webhook waits for one of each',
    );
    t.match(await count('wh_0', 4), { position: 6 });
    const attempt = { at: 'now', status: 500, error: 'refused_by_receiver', duration_ms: 1 } as const;
    const record = { webhook_id: 'wh_0', round: 1, attempt, next_attempt_at: null };
    t.equal(await store.recordAttempt({ ...record, delivery_id: 'dlv_1', state: 'pending' }), 'now');
    t.match(await count('wh_0', 4), { position: 6 });
    t.match(await store.countDelivery('default', { ...record, delivery_id: 'dlv_4' }), { failing: true });
    await store.recordAttempt({ ...record, delivery_id: 'dlv_1', state: 'failed' });
    t.match(await count('wh_0', 4), { position: 4 });
    const taken = { ...attempt, status: 200, error: null };
    t.equal(
      await store.recordAttempt({ ...record, delivery_id: 'dlv_2', attempt: taken, state: 'succeeded' }),
      null,
    );
    t.match(await store.countDelivery('default', { ...record, delivery_id: 'dlv_4' }), {
      position: 2,
      failing: false,
    });
    t.match(
      await store.countDelivery('default', { ...record, delivery_id: 'dlv_5' }),
      { position: 0 },
      'not in the log',
    );
  },
);

t.test(
  'a project with too many pending messages loses the oldest of the webhook that has the most',
  async (t) => {
    const { store, count } = await threeWebhooks(t);
    for (const [webhook, n] of [
      ['wh_0', 1],
      ['wh_1', 2],
      ['wh_1', 3],
      ['wh_1', 4],
    ] as const)
      await count(webhook, n);
    t.same((await count('wh_2', 5, 4)).given_up, ['dlv_2-1']);
    t.equal(await store.getDelivery('wh_1', 'dlv_2'), null);
    t.ok(await store.getDelivery('wh_0', 'dlv_1'));
    t.same((await count('wh_2', 6, 3)).given_up.length, 2);
    await store.deleteWebhook('default', 'wh_1');
    t.match(await count('wh_0', 7, 3), { given_up: [] }, 'messages of a deleted webhook do not count');
  },
);

t.test('a message that its log has dropped is no longer pending', async (t) => {
  const { store, commands, count } = await threeWebhooks(t);
  for (const n of [1, 2, 3]) await count('wh_0', n);
  await commands.run('add_delivery', { webhook_id: 'wh_0', delivery_id: 'dlv_4', document: '{}', keep: 2 });
  t.equal(await store.getDelivery('wh_0', 'dlv_2'), null);
  t.same(await count('wh_0', 4), { position: 2, given_up: ['dlv_1-1', 'dlv_2-1'] });
});
