/** Filters of the list of jobs. */
import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import type { Job } from '../../contracts/index.js';
import { connectRedis, disconnectRedis } from '../../platform/redis/connect.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { type JobStore, openJobStore } from '../job-store.js';
import { createTestJob } from '../testing/jobs.js';
import type { JobFilter } from './job-list.js';

const server = await startTestRedis();
t.teardown(() => server.stop());

async function freshStore(t: Test): Promise<{ store: JobStore; prefix: string }> {
  const prefix = `{${ulid()}}`;
  const store = await openJobStore({ url: server.url, prefix });
  t.teardown(() => store.close());
  return { store, prefix };
}

t.test('by name, pool, states, times and id prefix', async (t) => {
  const { store } = await freshStore(t);
  const jobs: Job[] = [];
  const resources = { pool: 'big' };
  for (const changes of [{ name: 'a' }, { name: 'b', resources }, { name: 'a', resources }, { name: 'b' }])
    jobs.push(await createTestJob(store, { labels: { team: 'x' }, ...changes }));
  const [first, second, third, fourth] = jobs as [Job, Job, Job, Job];
  await store.requestPause(first.id);
  await store.requestCancel(second.id);
  const list = async (filter: JobFilter) => {
    const found: string[] = [];
    // A page has one job, so each filter is tested with cursors.
    for (let after: string | undefined; ; ) {
      const { data, next_cursor } = await store.listJobs({ ...filter, limit: 1, ...(after && { after }) });
      found.push(...data.map(({ id }) => id));
      if (next_cursor === null) return found;
      after = next_cursor;
    }
  };
  const ids = (...jobs: Job[]) =>
    jobs
      .map(({ id }) => id)
      .sort()
      .reverse();
  t.same(await list({ name: 'a' }), ids(first, third));
  t.same(await list({ name: 'none' }), []);
  t.same(await list({ name: 'a', pool: 'big' }), ids(third));
  t.same(await list({ pool: 'big' }), ids(second, third));
  t.same(await list({ state: ['paused', 'cancelled'] }), ids(first, second));
  t.same(await list({ state: ['paused', 'cancelled', 'queued'] }), ids(...jobs));
  t.same(await list({ state: ['paused', 'cancelled'], name: 'b' }), ids(second));
  t.same(await list({ state: ['queued'], label: ['team=x'], pool: 'default' }), ids(fourth));
  t.same(await list({ id_prefix: third.id.slice(0, -1), name: 'a' }), ids(third));
  t.same(await list({ id_prefix: 'job_' }), ids(...jobs));
  const at = third.created_at;
  t.same(await list({ created_before: at }), ids(...jobs.filter((job) => job.created_at < at)));
  t.same(await list({ created_after: at }), ids(...jobs.filter((job) => job.created_at > at)));
  t.same(await list({ created_before: '2001-01-01T00:00:00Z' }), []);
  t.same(
    await list({ created_before: '9999-12-31T00:00:00Z', created_after: '1900-01-01T00:00:00Z' }),
    ids(...jobs),
  );
  t.same(await list({ name: 'a', project: 'other' }), []);
});

t.test('a change and a deletion reach every index', async (t) => {
  const { store, prefix } = await freshStore(t);
  const job = await createTestJob(store, { name: 'a', labels: { team: 'x' } });
  const spec = { ...job.spec, name: 'b', labels: { team: 'y' } };
  const changed = await store.updateJob({
    before: job,
    spec,
    requested_ranks: 1,
    changed: ['name', 'labels'],
  });
  t.equal(changed.name, 'b');
  t.same((await store.listJobs({ label: ['team=x'] })).data, []);
  t.same((await store.listJobs({ label: ['team=y'] })).data, [changed]);
  t.same((await store.listJobs({ name: 'a' })).data, []);
  t.same((await store.listJobs({ name: 'b' })).data, [changed]);
  await store.requestCancel(job.id);
  await store.deleteJob(job.id, { artifacts: false });
  const redis = await connectRedis(server.url, 'commands');
  t.teardown(() => disconnectRedis(redis));
  t.same(await redis.keys(`${prefix}:jobs*`), []);
});
