/** Webhooks from the creating request to the arriving message, over Redis and real HTTP. */

import { Webhook as Verifier } from 'standardwebhooks';
import t from 'tap';
import type { Delivery, Problem, WebhookMessage, WebhookWithSecret } from '../../contracts/index.js';
import { AddressPolicy } from '../../platform/outgoing/addresses.js';
import { openJobStore, startWebhookRelay } from '../../state/index.js';
import { createTestJob } from '../../state/testing/jobs.js';
import { loadContract } from '../operations.js';
import { ContractReader } from '../testing/contract-reader.js';
import { attemptsUntil, log, setUp } from './testing/sending.js';

t.test('the events of a job arrive complete and signed', async (t) => {
  const { store, receiver, startSending, createWebhook, deliveries } = await setUp(t);
  const { id, secret } = await createWebhook();
  await startSending();
  const job = await createTestJob(store);
  await store.requestPause(job.id);
  await receiver.until((received) => received.length === 2);

  const verifier = new Verifier(secret);
  const bySeq = [...receiver.received].sort((a, b) => a.message.data.seq - b.message.data.seq);
  for (const { headers, body } of bySeq) {
    const signed = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
    t.same(verifier.verify(body, signed), JSON.parse(body), 'another implementation verifies it');
    t.throws(() => verifier.verify(`${body} `, signed), 'a changed body is not');
    t.equal(headers['content-type'], 'application/json');
  }
  const stream = await store.readStream(job.id, null, 10);
  t.same(
    bySeq.map(({ message }) => message),
    stream.map((entry) => {
      if (entry.kind !== 'event') throw new Error('not an event');
      const { seq, position, type, at, data } = entry;
      return { type, timestamp: at, data: { job_id: job.id, seq, position, details: data } };
    }),
  );
  const logged = await deliveries(id);
  t.same(
    logged.map(({ message_id }) => message_id).sort(),
    receiver.received.map(({ headers }) => headers['webhook-id']).sort(),
  );
});

t.test('messages match the contract', async (t) => {
  const { store, receiver, startSending, createWebhook, request } = await setUp(t);
  const { id } = await createWebhook();
  // Two secrets and two signatures from here on.
  await request({ method: 'POST', url: `/v1/webhooks/${id}/rotate-secret` });
  await startSending();
  const job = await createTestJob(store);
  await store.requestPause(job.id);
  await receiver.until((received) => received.length === 2);

  const reader = new ContractReader(loadContract());
  const { parameters, requestBody } = reader.webhooks.jobEvent.post;
  const { schema = {} } = requestBody.content['application/json'] ?? {};
  for (const { headers, message } of receiver.received) {
    t.equal(reader.problems(schema, message), null, message.type);
    const sent = Object.keys(headers).filter((name) => name.startsWith('webhook-'));
    t.same(sent.sort(), parameters.map(({ name }) => name).sort());
    for (const { name, schema } of parameters) t.equal(reader.problems(schema, headers[name]), null, name);
    t.equal(String(headers['webhook-signature']).split(' ').length, 2);
  }
  const [example] = reader.resolve(schema).examples as WebhookMessage[];
  const like = receiver.received.find(({ message }) => message.type === example?.type)?.message;
  const namesIn = (message?: WebhookMessage) =>
    [message, message?.data, message?.data.details].map((part) => Object.keys(part ?? {}).sort());
  t.same(namesIn(example), namesIn(like), 'the example has the fields of a message that is sent');
});

t.test('a ping is sent to one webhook, independently of its subscriptions', async (t) => {
  const { receiver, startSending, createWebhook, deliveries, request } = await setUp(t);
  await createWebhook();
  const { id } = await createWebhook({ events: ['job.state'], jobs: 'named' });
  const { reached, onAttempt } = attemptsUntil('succeeded');
  await startSending({ onAttempt });
  const reply = await request({ method: 'POST', url: `/v1/webhooks/${id}/ping` });
  t.equal(reply.statusCode, 202);
  const asked = reply.json<Delivery>();
  await reached;
  const [{ headers, message }] = receiver.received as [(typeof receiver.received)[number]];
  t.same(message, asked.message);
  t.equal(headers['webhook-id'], asked.message_id);
  const reader = new ContractReader(loadContract());
  const { schema = {} } = reader.webhooks.ping.post.requestBody.content['application/json'] ?? {};
  t.equal(reader.problems(schema, message), null);
  t.match(await deliveries(id), [{ id: asked.id, state: 'succeeded', attempts: [{ error: null }] }]);
  const unknown = await request({ method: 'POST', url: `/v1/webhooks/wh_${'0'.repeat(26)}/ping` });
  t.match(unknown.json<Problem>(), { code: 'webhook_not_found' });
});

t.test('filters, jobs with their own webhooks, and projects', async (t) => {
  const { store, receiver, startSending, createWebhook, request, headersIn } = await setUp(t);
  await createWebhook({ url: receiver.url, events: ['job.state'] });
  const payload = { url: receiver.url };
  await request({ method: 'POST', url: '/v1/webhooks', payload, headers: await headersIn('team-b') });
  const named = await createWebhook({ events: ['job.created'], jobs: 'named' });
  await startSending();
  await createTestJob(store);
  const job = await createTestJob(store, { notify: { webhooks: [named.id] } });
  await store.requestPause(job.id);
  await receiver.until((received) => received.length === 2);
  const delivered = receiver.received.map(({ message }) => [message.type, message.data.job_id]).sort();
  t.same(delivered, [
    ['job.created', job.id],
    ['job.state', job.id],
  ]);
});

t.test('a failed delivery is retried with the same id until it succeeds', async (t) => {
  const { store, receiver, startSending, createWebhook, deliveries } = await setUp(t);
  const { id } = await createWebhook();
  const { reached, onAttempt } = attemptsUntil('succeeded');
  await startSending({ onAttempt });
  receiver.answerWith(500, 302);
  await createTestJob(store);
  await reached;
  t.equal(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size, 1);
  const [delivery] = await deliveries(id);
  t.match(delivery, { state: 'succeeded', next_attempt_at: null });
  t.match(delivery?.attempts, [
    { status: 500, error: 'refused_by_receiver' },
    { status: 302, error: 'refused_by_receiver' },
    { status: 204, error: null },
  ]);
});

t.test('an abandoned message is sent again once on request', async (t) => {
  const { store, request, receiver, startSending, createWebhook, deliveries } = await setUp(t);
  const { id } = await createWebhook();
  const { seen, reached, onAttempt } = attemptsUntil('failed');
  const first = await startSending({ onAttempt });
  receiver.answerWith(500, 500, 500);
  await createTestJob(store);
  await reached;
  t.equal(seen.length, 3);
  const [failed] = await deliveries(id);
  t.match(failed, { state: 'failed', next_attempt_at: null });
  await first.stop();

  const url = `/v1/webhooks/${id}/deliveries/${failed?.id}/redeliver`;
  const replies = await Promise.all([1, 2, 3].map(() => request({ method: 'POST', url })));
  for (const reply of replies) {
    t.equal(reply.statusCode, 202);
    t.match(reply.json(), { state: 'pending' });
  }
  const again = attemptsUntil('succeeded');
  await startSending({ onAttempt: again.onAttempt });
  await again.reached;
  t.equal(receiver.received.length, 4, 'sent once more for three concurrent requests');
  t.equal(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size, 1);
  t.match(await deliveries(id), [{ state: 'succeeded', attempts: { length: 4 } }]);
  const unknown = url.replace(/dlv_\w+/, `dlv_${'0'.repeat(26)}`);
  t.match((await request({ method: 'POST', url: unknown })).json(), { code: 'delivery_not_found' });
});

t.test('two secrets sign during a rotation', async (t) => {
  const { store, request, receiver, startSending, createWebhook } = await setUp(t);
  const { id, secret } = await createWebhook();
  const url = `/v1/webhooks/${id}/rotate-secret`;
  const rotate = async (overlapSeconds: number) =>
    (
      await request({ method: 'POST', url, payload: { overlap_seconds: overlapSeconds } })
    ).json<WebhookWithSecret>();
  const second = await rotate(3600);
  t.equal(second.secrets.length, 2);
  await startSending();
  const signers = async (...secrets: string[]) => {
    const at = receiver.received.length;
    await createTestJob(store);
    await receiver.until((received) => received.length > at);
    const message = receiver.received[at];
    if (message === undefined) throw new Error('nothing came');
    const { headers, body } = message;
    const signatures = String(headers['webhook-signature']).split(' ');
    const stamp = new Date(Number(headers['webhook-timestamp']) * 1000);
    const expected = secrets.map((each) =>
      new Verifier(each).sign(String(headers['webhook-id']), stamp, body),
    );
    t.same(signatures, expected);
  };
  await signers(second.secret, secret);
  const third = await rotate(3600);
  await signers(third.secret, second.secret);
  const last = await rotate(0);
  t.equal(last.secrets.length, 1);
  await signers(last.secret);
  const read = await request({ url: `/v1/webhooks/${id}` });
  t.notMatch(read.body, 'whsec_');
  t.notMatch((await request({ url: '/v1/webhooks' })).body, 'whsec_');
});

t.test('a forbidden address fails without retries', async (t) => {
  const { store, receiver, startSending, createWebhook, deliveries } = await setUp(t);
  const port = new URL(receiver.url).port;
  const { id } = await createWebhook({ url: `http://hooks.example.com:${port}/` });
  const { seen, reached, onAttempt } = attemptsUntil('failed');
  await startSending({ onAttempt, policy: new AddressPolicy([]), resolve: async () => ['127.0.0.1'] });
  await createTestJob(store);
  await reached;
  t.match(seen, [{ status: null, error: 'address_refused' }]);
  t.match(await deliveries(id), [{ state: 'failed', attempts: [{ error: 'address_refused' }] }]);
  t.equal(receiver.received.length, 0);
});

t.test('no event is lost if every process is killed between event and message', async (t) => {
  const { store, redis, receiver, startSending, createWebhook } = await setUp(t);
  await createWebhook();
  // No relay runs: new events exist only in the outbox.
  const jobs = await Promise.all(Array.from({ length: 20 }, () => createTestJob(store)));
  // A relay that reads entries and dies before it queues them.
  let read = 0;
  let reached: () => void = () => undefined;
  const dead = new Promise<void>((resolve) => {
    reached = resolve;
  });
  const relay = startWebhookRelay({
    url: redis.url,
    deliver: async () => {
      read += 1;
      if (read === 1) reached();
      throw new Error('gone');
    },
    log,
    retryAfterMs: 60_000,
  });
  await dead;
  await relay.stop();
  await redis.kill();
  await redis.start();
  const other = await openJobStore({ url: redis.url });
  t.teardown(() => other.close());
  for (const { id } of jobs) await other.requestPause(id);

  // A process that is stopped while it sends, and another that continues.
  const first = await startSending({ store: other });
  await receiver.until((received) => received.length >= 5);
  await first.stop();
  await startSending({ store: other });
  const wanted = jobs.flatMap(({ id }) => [`${id} 1`, `${id} 2`]).sort();
  const delivered = () =>
    [...new Set(receiver.received.map(({ message }) => `${message.data.job_id} ${message.data.seq}`))].sort();
  await receiver.until(() => delivered().length >= wanted.length);
  t.same(delivered(), wanted);
  const ids = new Map<string, Set<unknown>>();
  for (const { headers, message } of receiver.received) {
    const event = `${message.data.job_id} ${message.data.seq}`;
    ids.set(event, (ids.get(event) ?? new Set()).add(headers['webhook-id']));
  }
  t.ok(
    [...ids.values()].every((messages) => messages.size === 1),
    'a repeated message has the same id',
  );
});
