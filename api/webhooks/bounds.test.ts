/** Effects of an unresponsive receiver on others: no delay, little memory, and finally the loss of its messages. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue } from 'bullmq';
import t from 'tap';
import type { Webhook, WebhookWithSecret } from '../../contracts/index.js';
import { connectRedis, disconnectRedis } from '../../platform/redis/connect.js';
import type { WebhookEvent } from '../../state/index.js';
import { createTestJob } from '../../state/testing/jobs.js';
import { attemptsUntil, setUp } from './testing/sending.js';

const HOUR_MS = 3_600_000;

/** Name servers that do not answer until they are released. */
function silence() {
  const asked: string[] = [];
  let release: () => void = () => undefined;
  const end = new Promise<void>((resolve) => {
    release = resolve;
  });
  const resolve = async (name: string) => {
    asked.push(name);
    await end;
    return [];
  };
  return { asked, resolve, release };
}

function eventOf(n: number): WebhookEvent {
  const timestamp = new Date().toISOString();
  const details = { from: 'queued', to: 'provisioning', reason: null };
  const message = {
    type: 'job.state',
    timestamp,
    data: { job_id: `job_${'0'.repeat(26)}`, seq: n, position: `0a1b2c3d-${n}-660da8a518800`, details },
  };
  return { kind: 'event', entry: `${Date.now()}-${n}`, project: 'default', notify: [], message };
}

t.test('an unresponsive receiver delays no other project', async (t) => {
  const { store, request, receiver, startSending, createWebhook, headersIn } = await setUp(t);
  const port = new URL(receiver.url).port;
  await createWebhook({ url: `http://dead.example.com:${port}/` });
  const payload = { url: receiver.url };
  await request({ method: 'POST', url: '/v1/webhooks', payload, headers: await headersIn('team-b') });
  for (let job = 0; job < 300; job++) await createTestJob(store);
  const { asked, resolve, release } = silence();
  await startSending({ resolve });
  // More than one queue processes at once, and all of them hang.
  while (asked.length < 110) await sleep(10);
  const job = await createTestJob(store, { project: 'team-b' });
  await receiver.until((received) => received.length === 1);
  t.equal(receiver.received[0]?.message.data.job_id, job.id);
  release();
});

t.test('an unresponsive webhook delays no other webhook of its project', async (t) => {
  const { store, receiver, startSending, createWebhook } = await setUp(t);
  const port = new URL(receiver.url).port;
  await createWebhook({ url: `http://dead.example.com:${port}/` });
  for (let job = 0; job < 300; job++) await createTestJob(store);
  const { asked, resolve, release } = silence();
  await startSending({ resolve });
  while (asked.length < 110) await sleep(10);
  await createWebhook({ events: ['job.state'] });
  const job = await createTestJob(store);
  await store.requestPause(job.id);
  await receiver.until((received) => received.length === 1);
  t.equal(receiver.received[0]?.message.data.job_id, job.id);
  release();
});

t.test('abandoned messages leave the queue and are not sent', async (t) => {
  const { redis, store, receiver, startSending, createWebhook } = await setUp(t);
  const { id: webhookId } = await createWebhook({ url: 'http://dead.example.com/' });
  // Simulates a limit of three pending messages per project.
  const entries: string[] = [];
  const bounded = {
    ...store,
    countDelivery: async (...call: Parameters<typeof store.countDelivery>) => {
      const counted = await store.countDelivery(...call);
      entries.push(`${call[1].delivery_id}-1`);
      return { ...counted, given_up: entries.slice(-4, -3) };
    },
  };
  const timing = { retry_delays_ms: [HOUR_MS], timeout_ms: 1 };
  const { sender } = await startSending({ store: bounded, timing, resolve: async () => [] });
  const client = await connectRedis(redis.url, 'commands');
  t.teardown(() => disconnectRedis(client));
  for (let n = 1; n <= 8; n++) await sender.deliver(eventOf(n));
  const queued = async () =>
    (await client.keys('{zf}:webhooks*:dlv_*-1')).map((key) => key.split(':').at(-1));
  t.ok((await queued()).every((entry) => entries.slice(-3).includes(`${entry}`)));

  // A message whose entry could not be removed because a process was sending it.
  const round = { webhook_id: webhookId, delivery_id: `dlv_${'0'.repeat(26)}`, round: 1 };
  await store.updateWebhook('default', webhookId, (before) => ({ ...before, url: receiver.url }));
  const { seen, onAttempt } = attemptsUntil('succeeded');
  await startSending({
    store: { ...store, countDelivery: async () => ({ position: 1, failing: false, given_up: [] }) },
    onAttempt,
  });
  await new Queue('webhooks', { connection: client as never, prefix: '{zf}' }).add('message', round, {
    jobId: 'gone',
  });
  while (!(await client.zscore('{zf}:webhooks:completed', 'gone'))) await sleep(10);
  t.same(seen, []);
});

t.test('messages that failed together are retried at different times', async (t) => {
  const { startSending, createWebhook, deliveries } = await setUp(t);
  const { id } = await createWebhook({ url: 'http://dead.example.com/' });
  const timing = { retry_delays_ms: [HOUR_MS], timeout_ms: 1 };
  const { sender } = await startSending({ timing, resolve: async () => [] });
  for (let n = 1; n <= 20; n++) await sender.deliver(eventOf(n));
  const tried = async () => (await deliveries(id)).filter(({ attempts }) => attempts.length > 0);
  while ((await tried()).length < 20) await sleep(10);
  const pauses = (await tried()).map(
    ({ next_attempt_at, attempts }) => Date.parse(`${next_attempt_at}`) - Date.parse(`${attempts[0]?.at}`),
  );
  t.ok(Math.min(...pauses) >= HOUR_MS);
  t.ok(Math.max(...pauses) < 1.3 * HOUR_MS);
  t.ok(
    Math.max(...pauses) - Math.min(...pauses) > HOUR_MS / 100,
    'twenty by chance within the same hundredth: once in 10^25',
  );
});

t.test(
  'a webhook without a delivery for three days is disabled and reports the reason until it is enabled',
  async (t) => {
    const { redis, store, request, receiver, startSending, createWebhook } = await setUp(t);
    const { id } = await createWebhook();
    const read = async () => (await request({ url: `/v1/webhooks/${id}` })).json<Webhook>();
    const failed = attemptsUntil('failed');
    await startSending({ onAttempt: failed.onAttempt });
    t.match(await read(), { failing_since: null, disabled_reason: null });
    receiver.answerWith(500, 500, 500);
    await createTestJob(store);
    await failed.reached;
    const failing = await read();
    t.match(failing, { enabled: true, failing_since: failed.seen[0]?.at, disabled_reason: null });

    const client = await connectRedis(redis.url, 'commands');
    t.teardown(() => disconnectRedis(client));
    const longAgo = new Date(Date.now() - 73 * HOUR_MS).toISOString();
    await client.hset(`{zf}:webhook:${id}`, 'failing_since', longAgo);
    receiver.answerWith(500);
    await createTestJob(store);
    while ((await read()).enabled) await sleep(10);
    t.match(await read(), { enabled: false, disabled_reason: 'not_delivered' });
    const payload = { enabled: true };
    const enabled = await request({ method: 'PATCH', url: `/v1/webhooks/${id}`, payload });
    t.match(enabled.json<WebhookWithSecret>(), { enabled: true, disabled_reason: null, failing_since: null });
    const taken = receiver.received.length;
    const job = await createTestJob(store);
    await receiver.until((received) =>
      received.slice(taken).some(({ message }) => message.data.job_id === job.id),
    );
  },
);

t.test('a delivery resets the count of failures', async (t) => {
  const { store, receiver, startSending, createWebhook } = await setUp(t);
  const { id } = await createWebhook();
  receiver.answerWith(500);
  const { reached, onAttempt } = attemptsUntil('succeeded');
  await startSending({ onAttempt });
  await createTestJob(store);
  await reached;
  t.match(await store.getWebhook('default', id), { failing_since: null });
});
