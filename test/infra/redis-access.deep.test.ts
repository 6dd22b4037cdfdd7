/**
 * Redis with the settings of Terraform's MemoryDB: cluster mode with one shard, and a user with the rights of
 * modules/queue. A job is trained, paused and resumed there; no command may be refused or redirected.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import t, { type Test } from 'tap';
import { projectRoot } from '../../platform/process/root.js';
import { connectRedis, disconnectRedis } from '../../platform/redis/connect.js';
import { freePort } from '../../platform/testing/free-port.js';
import { RedisProcess } from '../../platform/testing/redis-process.js';
import { untilDone } from '../../platform/testing/waiting.js';
import { smallJob } from '../support/specs.js';
import { sampleText, startStack } from '../support/stack.js';

const PASSWORD = 'not-a-secret-0123456789';
const NEXT_PASSWORD = 'not-a-secret-9876543210';
const source = readFileSync(join(projectRoot(), 'infra/terraform/modules/queue/access.tf'), 'utf8');
const access = /access_string = "([^"]+)"/.exec(source)?.[1] ?? '';

/** A server with all slots; resolves with the URL of the programs' user and an unrestricted connection. */
async function startCluster(t: Test): Promise<{ url: string; operator: Redis }> {
  const root = mkdtempSync(join(tmpdir(), 'zf-redis-cluster-'));
  const server = await RedisProcess.server(root, {
    'cluster-enabled': 'yes',
    'cluster-port': await freePort(),
    user: ['default off', `operator on >${PASSWORD} ~* &* +@all`, `app >${PASSWORD} ${access}`],
  });
  t.teardown(async () => {
    await server.kill();
    rmSync(root, { recursive: true, force: true });
  });
  const operator = await untilDone(() =>
    connectRedis(`redis://operator:${PASSWORD}@127.0.0.1:${server.port}`, 'queue'),
  );
  t.teardown(() => disconnectRedis(operator));
  await operator.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
  await untilDone(async () => {
    const info = String(await operator.call('CLUSTER', 'INFO'));
    if (!info.includes('cluster_state:ok')) throw new Error(info);
  });
  return { url: `redis+cluster://app:${PASSWORD}@127.0.0.1:${server.port}?replicas=0`, operator };
}

t.test('jobs run on a Redis in cluster mode with only the rights that Terraform grants', async (t) => {
  t.match(access, /^on ~\{zf\}\* /);
  const { url, operator } = await startCluster(t);
  const { client, output } = await startStack(t, { env: { ZEROFLEET_REDIS_URL: url } });
  const dataset = (await client.datasets.create('openapi', sampleText())).id;
  const { id } = await client.jobs.create(smallJob({ name: 'cluster', dataset, steps: 40, ranks: 2 }));
  await client.jobs.until(id, (job) => job.progress.step >= 5, { interval_ms: 20 });
  await client.jobs.pause(id);
  const paused = await client.jobs.until(id, (job) => job.state === 'paused', { interval_ms: 20 });
  t.equal(paused.state, 'paused', JSON.stringify(paused.failure));
  await client.jobs.resume(id, { ranks: 1 });
  const job = await client.jobs.until(id, () => false);
  t.equal(job.state, 'succeeded', `${JSON.stringify(job.failure)}\n${output()}`);
  const refused = (await operator.call('ACL', 'LOG')) as unknown[];
  t.same(refused, [], 'no command was refused');
  t.notMatch(output(), /NOPERM|MOVED|CROSSSLOT/);
});

t.test('a new password needs no moment without Redis', async (t) => {
  const { url, operator } = await startCluster(t);
  const objects = mkdtempSync(join(tmpdir(), 'zf-objects-'));
  t.teardown(() => rmSync(objects, { recursive: true, force: true }));
  const start = (redis: string) =>
    startStack(t, { env: { ZEROFLEET_REDIS_URL: redis, ZEROFLEET_OBJECT_STORE: `file://${objects}` } });
  const before = await start(url);
  const dataset = (await before.client.datasets.create('openapi', sampleText())).id;
  const job = smallJob({ name: 'rotation', dataset, steps: 60, ranks: 2 });
  const { id } = await before.client.jobs.create(job);
  await before.client.jobs.until(id, (state) => state.progress.step >= 5, { interval_ms: 20 });
  // As Terraform does it: both passwords are accepted, and programs that start get the new one.
  await operator.call('ACL', 'SETUSER', 'app', `>${NEXT_PASSWORD}`);
  const newUrl = url.replace(PASSWORD, NEXT_PASSWORD);
  const after = await start(newUrl);
  await before.stop();
  // With the next password the first one goes. Programs that have the second one notice nothing.
  await operator.call('ACL', 'SETUSER', 'app', `<${PASSWORD}`);
  await t.rejects(connectRedis(url, 'commands'), { code: 'job_store_unavailable' });
  await disconnectRedis(await connectRedis(newUrl, 'commands'));
  const ended = await after.client.jobs.until(id, () => false);
  t.equal(ended.state, 'succeeded', `${JSON.stringify(ended.failure)}\n${after.output()}`);
  t.notMatch(before.output() + after.output(), /WRONGPASS|NOPERM/);
});

t.test('the same rights reach no other key, and not the server', async (t) => {
  const { url } = await startCluster(t);
  const redis = await connectRedis(url, 'commands');
  t.teardown(() => disconnectRedis(redis));
  await t.rejects(redis.set('other', '1'), /NOPERM/);
  await t.rejects(redis.publish('other', '1'), /NOPERM/);
  await t.rejects(redis.flushall(), /NOPERM/);
  await t.rejects(redis.config('GET', 'dir'), /NOPERM/);
  await t.rejects(redis.keys('*'), /NOPERM/);
  await t.rejects(redis.call('ACL', 'LIST'), /NOPERM/);
});
