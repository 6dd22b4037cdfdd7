/** Cache of jobs: never stale, and bounded. */
import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import type { Job } from '../../contracts/index.js';
import { connectRedis, disconnectRedis } from '../../platform/redis/connect.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { CommandRunner } from '../core/command-runner.js';
import { type JobStore, openJobStore } from '../job-store.js';
import { createTestJob } from '../testing/jobs.js';
import { JobReader } from './job-reader.js';

const server = await startTestRedis();
t.teardown(() => server.stop());

/** Opens two servers on one store, and a connection to Redis. */
async function open(t: Test) {
  const prefix = `{${ulid()}}`;
  const [store, other] = await Promise.all([1, 2].map(() => openJobStore({ url: server.url, prefix })));
  const redis = await connectRedis(server.url, 'commands');
  t.teardown(() => Promise.all([store?.close(), other?.close(), disconnectRedis(redis)]));
  return { store: store as JobStore, other: other as JobStore, redis, prefix };
}

t.test('an unchanged job is the same object, a changed one is another', async (t) => {
  const { store, other } = await open(t);
  const ahead = await createTestJob(store);
  const { id } = await createTestJob(store);
  let last: Job | null = null;
  const changed = async (title: string, expected: object) => {
    const job = await store.getJob(id);
    t.match(job, expected, title);
    t.not(job, last, title);
    t.equal(await store.getJob(id), job, `${title}: the same object`);
    t.same(await other.getJob(id), job, `${title}: as another server reads it`);
    last = job;
  };
  await changed('made', { state: 'queued', queue_position: 2 });
  t.same((await store.listJobs()).data[0], last);
  // The job's own record does not change.
  await other.requestCancel(ahead.id);
  await changed('it moves up', { queue_position: 1 });
  await other.updateJob({
    before: last as unknown as Job,
    changed: ['labels'],
    requested_ranks: 1,
    spec: { ...(last as unknown as Job).spec, labels: { team: 'a' } },
  });
  await changed('labelled', { labels: { team: 'a' } });
  const claim = await other.claimAttempt(id, 1, 'a', 60_000);
  if (!claim.granted) throw new Error(claim.code);
  await changed('claimed', { state: 'provisioning', queue_position: null, epoch: 1 });
  await other.finishJob(id, claim.execution, 'failed');
  await changed('ended', { state: 'failed', state_history: { length: 3 } });
  await other.deleteJob(id, { artifacts: false });
  t.equal(await store.getJob(id), null);
});

t.test('callers can not change a cached job', async (t) => {
  const { store } = await open(t);
  const { id } = await createTestJob(store);
  const job = (await store.getJob(id)) as Job;
  t.throws(() => {
    job.spec.train.steps = 7;
  }, TypeError);
  t.throws(() => job.state_history.pop(), TypeError);
});

t.test('concurrent reads share one command and get separate results', async (t) => {
  const { store, redis, prefix } = await open(t);
  const jobs = await Promise.all(Array.from({ length: 200 }, () => createTestJob(store)));
  await redis.hset(`${prefix}:job:${jobs[7]?.id}`, 'spec', '{');
  const commands = new CommandRunner(redis, prefix);
  const reader = new JobReader(commands);
  const asked = async () => {
    const stats = await redis.info('commandstats');
    return Number(/cmdstat_fcall_ro:calls=(\d+)/.exec(stats)?.[1]);
  };
  const before = await asked();
  const ids = [...jobs.map(({ id }) => id), 'job_none'];
  const found = await Promise.allSettled([...ids, ...ids].map((id) => reader.read(id)));
  t.equal((await asked()) - before, 2, 'one full batch, and the rest');
  found.forEach((result, i) => {
    const id = ids[i % ids.length];
    if (id === jobs[7]?.id) t.equal(result.status, 'rejected');
    else if (id === 'job_none') t.same(result, { status: 'fulfilled', value: null });
    else t.match(result, { status: 'fulfilled', value: { id } });
  });
});

t.test('the cache is bounded by its text; the most recently used jobs stay', async (t) => {
  const { store, redis, prefix } = await open(t);
  const [first, second] = [await createTestJob(store), await createTestJob(store)];
  const text = (await redis.hgetall(`${prefix}:job:${first.id}`)) as Record<string, string>;
  const bytes = Object.entries(text).flat().join('').length;
  const reader = new JobReader(new CommandRunner(redis, prefix), 2 * bytes);
  const kept = await reader.read(first.id);
  t.equal(await reader.read(first.id), kept);
  const other = await reader.read(second.id);
  t.equal(await reader.read(second.id), other);
  t.not(await reader.read(first.id), kept, 'the second one replaced it');
});
