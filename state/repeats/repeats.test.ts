/** Idempotency keys of requests whose effect and answer are two steps. */
import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import { connectRedis, disconnectRedis } from '../../platform/redis/connect.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { openJobStore } from '../job-store.js';
import { IDEMPOTENCY_TTL_MS } from './idempotency.js';

const LEASE_MS = 60_000;
const REPLY = { status: 201, headers: { location: '/v1/x' }, body: '{}', has_secret: false };
const server = await startTestRedis();
t.teardown(() => server.stop());

async function freshStore(t: Test) {
  const prefix = `{${ulid()}}`;
  const store = await openJobStore({ url: server.url, prefix });
  const redis = await connectRedis(server.url, 'commands');
  t.teardown(async () => {
    await disconnectRedis(redis);
    await store.close();
  });
  return { store, redis, prefix };
}

const request = (token: string, changes = {}) => ({
  scope: 'default:createWebhook',
  key: 'k',
  body_hash: 'h',
  token,
  ...changes,
});

t.test('a request holds its key while it runs, and stores its reply', async (t) => {
  const { store } = await freshStore(t);
  t.same(await store.beginRequest(request('a'), LEASE_MS), { state: 'begun' });
  t.same(await store.beginRequest(request('b'), LEASE_MS), { state: 'running' });
  await t.rejects(store.beginRequest(request('c', { body_hash: 'h2' }), LEASE_MS), {
    code: 'idempotency_key_reused',
  });
  t.equal(await store.endRequest(request('a'), REPLY), true);
  t.same(await store.beginRequest(request('b'), LEASE_MS), { state: 'done', reply: REPLY });
  await t.rejects(store.beginRequest(request('c', { body_hash: 'h2' }), LEASE_MS), {
    code: 'idempotency_key_reused',
  });
});

t.test('another key, or the same key in another scope, is another request', async (t) => {
  const { store } = await freshStore(t);
  await store.beginRequest(request('a'), LEASE_MS);
  for (const changes of [{ key: 'k2' }, { scope: 'team-b:createWebhook' }, { scope: 'default:', key: 'k' }])
    t.same(await store.beginRequest(request('b', changes), LEASE_MS), { state: 'begun' });
});

t.test('a request that has changed nothing releases its key', async (t) => {
  const { store } = await freshStore(t);
  await store.beginRequest(request('a'), LEASE_MS);
  t.equal(await store.endRequest(request('a'), null), true);
  t.same(await store.beginRequest(request('b', { body_hash: 'h2' }), LEASE_MS), { state: 'begun' });
});

t.test('the key of a request whose server has died goes to the next request', async (t) => {
  const { store } = await freshStore(t);
  await store.beginRequest(request('a'), 0);
  t.same(await store.beginRequest(request('b'), LEASE_MS), { state: 'begun' });
  t.equal(await store.keepRequest(request('a'), LEASE_MS), false, 'the first request has lost it');
  t.equal(await store.endRequest(request('a'), REPLY), false);
  t.equal(await store.endRequest(request('a'), null), false);
  t.same(
    await store.beginRequest(request('c'), LEASE_MS),
    { state: 'running' },
    'the second request holds it',
  );
});

t.test('a request that renews its lease keeps its key', async (t) => {
  const { store } = await freshStore(t);
  await store.beginRequest(request('a'), 0);
  t.equal(await store.keepRequest(request('a'), LEASE_MS), true);
  t.same(await store.beginRequest(request('b'), LEASE_MS), { state: 'running' });
  t.equal(await store.keepRequest(request('a'), 0), true);
  t.same(await store.beginRequest(request('b'), LEASE_MS), { state: 'begun' });
});

t.test('replies are kept for seven days, the text of keys is not stored', async (t) => {
  const { store, redis, prefix } = await freshStore(t);
  const key = 'a key that nobody may read';
  await store.beginRequest(request('a', { key }), LEASE_MS);
  await store.endRequest(request('a', { key }), REPLY);
  const [entry = '', ...others] = await redis.keys(`${prefix}:request:*`);
  t.equal(others.length, 0);
  t.match(entry, /:request:[0-9a-f]{64}$/);
  t.equal(IDEMPOTENCY_TTL_MS, 604_800_000);
  const left = await redis.pttl(entry);
  t.ok(left > IDEMPOTENCY_TTL_MS - 600_000 && left <= IDEMPOTENCY_TTL_MS);
  t.notMatch(JSON.stringify(await redis.hgetall(entry)), key);
});
