/**
 * Redis with replicas: real servers under sentinels, and in a cluster. failover.deep.test.ts loses primaries under
 * load.
 */
import { type ConnectionOptions, Queue } from 'bullmq';
import t, { type Test } from 'tap';
import { REDIS_PREFIX } from '../../contracts/index.js';
import { FailoverRedis } from '../testing/failover-redis.js';
import { untilDone } from '../testing/waiting.js';
import { connectRedis, disconnectRedis, redisError } from './connect.js';

const key = (n: number) => `${REDIS_PREFIX}:test:${n}`;

async function started(t: Test, servers: Promise<FailoverRedis>): Promise<FailoverRedis> {
  t.teardown(async () => (await servers).stop());
  return servers;
}

t.test('a write that no replica gets is not acknowledged', async (t) => {
  const servers = await started(t, FailoverRedis.sentinel());
  const redis = await connectRedis(servers.url, 'commands');
  const single = await connectRedis(servers.url.replace('/zf', '/zf?replicas=0'), 'commands');
  t.teardown(() => Promise.all([redis, single].map(disconnectRedis)));
  const primary = await servers.primary();
  for (const server of servers.servers) if (server !== primary) await server.kill();
  const failure = await redis.set(key(0), '1').catch(redisError);
  t.match(failure, { code: 'job_store_unavailable', message: /0 of 1 replicas have the change/ });
  // BullMQ writes by scripts.
  const queue = new Queue('test', { connection: redis as ConnectionOptions, prefix: REDIS_PREFIX });
  queue.on('error', () => undefined);
  await t.rejects(queue.add('entry', {}), { message: /0 of 1 replicas have the change/ });
  await queue.close();
  t.equal(await redis.get(key(0)), '1', 'reads do not wait');
  t.equal(await single.set(key(1), '1'), 'OK', 'by choice none is needed');
});

t.test('a reply about a write that no replica has is no acknowledgement either', async (t) => {
  const servers = await started(t, FailoverRedis.sentinel());
  const redis = await connectRedis(servers.url, 'commands');
  const other = await connectRedis(servers.url, 'commands');
  t.teardown(() => Promise.all([redis, other].map(disconnectRedis)));
  const read = () => other.eval(`return redis.call('GET', KEYS[1])`, 1, key(0));
  const primary = await servers.primary();
  const replicas = servers.servers.filter((server) => server !== primary);
  // The replicas stay connected.
  for (const { pid } of replicas) process.kill(pid ?? 0, 'SIGSTOP');
  const refused = { message: /0 of 1 replicas have the change/ };
  await t.rejects(redis.set(key(0), '1'), refused);
  await t.rejects(read(), refused);
  for (const { pid } of replicas) process.kill(pid ?? 0, 'SIGCONT');
  t.equal(await untilDone(read), '1');
});

t.test('a write is acknowledged while most sentinels can be reached', async (t) => {
  const servers = await started(t, FailoverRedis.sentinel());
  const redis = await connectRedis(servers.url, 'commands');
  t.teardown(() => disconnectRedis(redis));
  const [one, another] = servers.others;
  await one?.kill();
  t.equal(await untilDone(() => redis.set(key(0), '1')), 'OK');
  await another?.kill();
  const failure = await redis.set(key(0), '2').catch(redisError);
  t.match(failure, { code: 'job_store_unavailable', message: /sentinel/ });
  one?.start();
  t.equal(await untilDone(() => redis.set(key(0), '3')), 'OK');
});

t.test('a node that is not in the URL is found', async (t) => {
  const servers = await started(t, FailoverRedis.cluster());
  const redis = await connectRedis(servers.url, 'commands');
  t.teardown(() => disconnectRedis(redis));
  const seeds = servers.url.slice(servers.url.indexOf('127'));
  const first = await servers.primary();
  t.ok(seeds.includes(`:${first.port}`));
  await first.kill();
  let primary = first;
  while (primary === first) primary = await servers.primary();
  t.notOk(seeds.includes(`:${primary.port}`));
  t.equal(await untilDone(() => redis.set(key(0), '1')), 'OK');
});

for (const kind of ['sentinel', 'cluster'] as const) {
  t.test(`${kind}: when all servers were away, connections go on`, async (t) => {
    const servers = await started(t, FailoverRedis[kind]());
    const redis = await connectRedis(servers.url, 'commands');
    const subscriber = await connectRedis(servers.url, 'subscriber');
    t.teardown(() => Promise.all([redis, subscriber].map(disconnectRedis)));
    await redis.set(key(0), '1');
    const start = await servers.killAll();
    const unavailable = { code: 'job_store_unavailable' };
    t.match(await redis.get(key(0)).catch(redisError), unavailable);
    t.match(await connectRedis(servers.url, 'commands').catch(redisError), unavailable);
    t.match(await redis.get(key(0)).catch(redisError), unavailable, 'also later');
    start();
    t.equal(await untilDone(() => redis.get(key(0))), '1');
    await untilDone(() => redis.set(key(1), '1'));
    await untilDone(() => subscriber.subscribe(`${REDIS_PREFIX}:news`));
  });
}
