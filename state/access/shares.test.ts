/** Shares of jobs, and their sessions. */
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import { connectRedis, disconnectRedis } from '../../platform/redis/connect.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { createTestJob } from '../testing/jobs.js';
import { openStores } from '../testing/stores.js';

const server = await startTestRedis();
t.teardown(() => server.stop());

async function start(t: Test) {
  const { prefix, open } = openStores(t, server.url);
  const redis = await connectRedis(server.url, 'commands');
  t.teardown(() => disconnectRedis(redis));
  const [store, other] = [await open(), await open()];
  const create = async () => (await createTestJob(store)).id;
  const share = async (jobId: string, token = `zf_share_${ulid()}`, lifeMs = 60_000) => ({
    ...(await store.createShare(token, { job_id: jobId, description: 'a note', life_ms: lifeMs })),
    token,
  });
  /** Waits until another server does not know the token. */
  const untilUnknown = async (token: string) => {
    while ((await other.findPrincipal(token)) !== null) await sleep(1);
  };
  return { store, other, redis, prefix, create, share, untilUnknown };
}

t.test('a share is a principal that reads one job', async (t) => {
  const { store, other, redis, prefix, create, share } = await start(t);
  const [jobId, second] = [await create(), await create()];
  const before = await store.now();
  const { token, ...made } = await share(jobId);
  const left = Date.parse(made.expires_at) - before;
  t.ok(left >= 60_000 && left < 120_000, `${left} ms`);
  const principal = await other.findPrincipal(token);
  t.same(principal, {
    id: made.id,
    name: 'a note',
    project: 'default',
    scopes: ['jobs:read'],
    requests_per_minute: null,
    expires_at: made.expires_at,
    api_key: null,
    share: made,
    user: null,
  });
  const { id: newer } = await share(jobId);
  t.same(
    (await store.listShares(jobId)).map(({ id }) => id),
    [newer, made.id],
  );
  t.same(await store.listShares(second), []);
  t.equal(await store.findApiKey(token), null, 'it is no key');
  t.equal(await store.findPrincipal('zf_share_unknown'), null);
  t.notOk((await redis.keys(`${prefix}:*`)).join().includes(token), 'only its hash is stored');
  t.notOk(JSON.stringify(await redis.hgetall(`${prefix}:principal:${made.id}`)).includes(token));
  await t.rejects(share(`job_${ulid()}`), { code: 'job_not_found' });
});

t.test('a revoked share ends everywhere, with its sessions', async (t) => {
  const { store, other, create, share, untilUnknown } = await start(t);
  const [jobId, second] = [await create(), await create()];
  const { id, token } = await share(jobId);
  await store.createSession('session', { principal_id: id }, { secure: false });
  for (const each of [store, other]) {
    t.match(await each.findPrincipal(token), { id });
    t.match(await each.findSession('session'), { principal: { id, share: { job_id: jobId } } });
  }
  t.equal(await store.revokeShare(second, id), false, 'of another job');
  t.not(await store.findPrincipal(token), null);
  t.equal(await store.revokeShare(jobId, id), true);
  t.equal(await store.revokeShare(jobId, id), false);
  t.same([await store.findPrincipal(token), await store.findSession('session')], [null, null]);
  await untilUnknown(token);
  t.equal(await other.findSession('session'), null);
  t.equal(await store.createSession('x', { principal_id: id }, { secure: false }), null);
  t.same(await store.listShares(jobId), []);
});

t.test('a share ends by itself, and with its job', async (t) => {
  const { store, redis, prefix, create, share, untilUnknown } = await start(t);
  const jobId = await create();
  const short = await share(jobId, 'zf_share_short', 1);
  await untilUnknown(short.token);
  while ((await store.findPrincipal(short.token)) !== null) await sleep(1);
  t.same(await store.listShares(jobId), []);
  const { id, token } = await share(jobId);
  await store.createSession('session', { principal_id: id }, { secure: false });
  await store.requestCancel(jobId);
  t.not(await store.findPrincipal(token), null, 'a job that has ended can be read');
  await store.deleteJob(jobId, { artifacts: false });
  await untilUnknown(token);
  while ((await store.findSession('session')) !== null) await sleep(1);
  const kept = (await redis.keys(`${prefix}:*`)).filter((name) => /share|principal|session/.test(name));
  t.same(
    kept.filter((name) => name.includes(id) || name.includes(':session:')),
    [],
  );
});

t.test('a job has at most 50 shares; those that have ended do not count', async (t) => {
  const { store, create, share, untilUnknown } = await start(t);
  const jobId = await create();
  await share(jobId, 'zf_share_short', 1);
  await untilUnknown('zf_share_short');
  // Redis' clock may be set back a little.
  const ends = await store.now();
  while ((await store.now()) < ends + 100) await sleep(5);
  for (let n = 0; n < 50; n += 1) await share(jobId);
  await t.rejects(share(jobId), { code: 'too_many_shares' });
  const [first] = await store.listShares(jobId);
  await store.revokeShare(jobId, first?.id ?? '');
  await t.resolves(share(jobId));
});
