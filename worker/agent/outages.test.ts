import { rename, rm } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { REDIS_PREFIX } from '../../contracts/index.js';
import { connectRedis, disconnectRedis } from '../../platform/redis/connect.js';
import { until } from '../../platform/testing/waiting.js';
import { fakeStateDigest } from '../testing/fake-state.js';
import { Fleet } from '../testing/fleet.js';

const upTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1);

/** Slow enough that the first save, at step 5, is finished long before the next one. */
const SLOW_MS = 200;

async function fleet(t: { teardown(end: () => Promise<void>): void }): Promise<Fleet> {
  const started = await Fleet.start({ ranks: { slow: { from: 6, ms: SLOW_MS } } });
  t.teardown(() => started.close());
  return started;
}

t.test('a disk that is full for a while costs saves, not the job', async (t) => {
  const f = await fleet(t);
  await f.agent();
  const id = await f.submit({ steps: 60, every_steps: 5, ranks: 2 });
  await f.until(id, (job) => job.latest_checkpoint !== null);
  const makeRoom = await f.fillDisk();
  const failed = await untilEvent(f, id, 'checkpoint.failed');
  t.match(failed.data, { code: 'disk_full', message: /[a-z]+ [a-z]+/ });
  t.notMatch(failed.data.message, /\[object/);
  t.equal((await f.store.getJob(id))?.state, 'running', 'training goes on');
  await makeRoom();
  await f.speedUp();
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 60));
  t.strictSame(await f.steps(id), upTo(60), 'no step was repeated');
});

t.test('a disk that stays full fails the job at its end and keeps its checkpoints', async (t) => {
  const f = await fleet(t);
  await f.agent();
  const id = await f.submit({ steps: 40, every_steps: 5, ranks: 2 });
  const saved = await f.until(id, (job) => job.latest_checkpoint !== null);
  await f.fillDisk();
  await f.speedUp();
  const job = await f.untilState(id, 'failed');
  t.match(job.failure, { category: 'capacity', code: 'disk_full', retryable: true });
  t.ok((job.latest_checkpoint?.step ?? 0) >= (saved.latest_checkpoint?.step ?? 0));
  t.ok((await f.store.listCheckpoints(id)).data.length > 0);
});

t.test('an object store outage costs only time', async (t) => {
  const f = await fleet(t);
  await f.agent(4, { storage: { attempts: 100, first_delay_ms: 20, max_delay_ms: 100 } });
  const id = await f.submit({ steps: 80, every_steps: 5, ranks: 2 });
  await f.until(id, (job) => job.latest_checkpoint !== null);
  await rename(f.objectsDir, `${f.objectsDir}.away`);
  const failed = await untilEvent(f, id, 'checkpoint.failed');
  t.match(failed.data, { code: /bucket_not_found|object_store_unavailable/ });
  // The agent may create a folder in place of the store at any moment.
  await until(async () => {
    const isBack = await rename(`${f.objectsDir}.away`, f.objectsDir).then(
      () => true,
      () => false,
    );
    if (!isBack) await rm(f.objectsDir, { recursive: true, force: true }).catch(() => undefined);
    return isBack;
  });
  await f.speedUp();
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 80));
});

t.test('a Redis outage shorter than the lease interrupts no training and loses no metric', async (t) => {
  const f = await fleet(t);
  await f.agent(4, { lease_ms: 60_000 });
  const id = await f.submit({ steps: 80, every_steps: 10, ranks: 2 });
  await f.until(id, (job) => job.progress.step >= 5);
  await f.redis.kill();
  await delay(500);
  await f.redis.start();
  await f.speedUp();
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 80));
  t.equal(job.epoch, 1);
  t.strictSame(await f.steps(id), upTo(80));
});

t.test('a full Redis costs no job its lease, and no metric is lost', async (t) => {
  const f = await fleet(t);
  await f.agent(4, { lease_ms: 10_000 });
  const id = await f.submit({ steps: 80, every_steps: 10, ranks: 2 });
  await f.until(id, (job) => job.progress.step >= 5);
  const redis = await connectRedis(f.redis.url, 'commands');
  t.teardown(() => disconnectRedis(redis));
  await redis.config('SET', 'maxmemory', '1');
  await t.rejects(f.store.check(), { code: 'redis_full' });
  const renewedUntil = async () => Number(await redis.zscore(`${REDIS_PREFIX}:leases`, id));
  const fullSince = await renewedUntil();
  await until(async () => (await renewedUntil()) > fullSince + 4000);
  await redis.config('SET', 'maxmemory', '0');
  await f.speedUp();
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 80));
  t.equal(job.epoch, 1, 'one worker had it all the time');
  t.strictSame(await f.steps(id), upTo(80));
});

t.test(
  'a Redis outage longer than the lease stops the ranks, and the job resumes from its last checkpoint',
  async (t) => {
    const f = await fleet(t);
    await f.agent(4, { lease_ms: 1500 });
    const id = await f.submit({ steps: 100, every_steps: 5, ranks: 2, max_errors: 0 });
    const before = await f.until(id, (job) => job.latest_checkpoint !== null);
    await f.redis.kill();
    await delay(3000);
    await f.redis.start();
    await f.until(id, (job) => job.epoch > before.epoch);
    await f.speedUp();
    const job = await f.untilState(id, 'succeeded');
    t.equal(job.export?.state_digest, fakeStateDigest(1, 100));
  },
);

async function untilEvent(f: Fleet, id: string, type: string) {
  for (let tries = 0; tries < 1000; tries++) {
    const event = (await f.events(id)).find((entry) => entry.type === type);
    if (event) return event;
    await delay(20);
  }
  throw new Error(`no event ${type}`);
}
