/** A job that no replica has yet is not acknowledged, not even by the answer to a repeated request. */
import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import { FailoverRedis } from '../../platform/testing/failover-redis.js';
import { untilDone } from '../../platform/testing/waiting.js';
import { openJobStore } from '../job-store.js';
import { testDataset, testSpec } from '../testing/jobs.js';

async function storeOn(t: Test, servers: FailoverRedis) {
  const store = await openJobStore({ url: servers.url });
  t.teardown(() => store.close());
  return store;
}

t.test('a repeated request is not answered with a job that no replica has', async (t) => {
  const servers = await FailoverRedis.sentinel();
  t.teardown(() => servers.stop());
  const [first, second] = [await storeOn(t, servers), await storeOn(t, servers)];
  const dataset = testDataset();
  await first.putDataset(dataset);
  const idempotency = { scope: 's', key: 'k', body_hash: 'h' };
  const input = () => ({ id: `job_${ulid()}`, spec: testSpec(dataset.id), idempotency });
  const primary = await servers.primary();
  const replicas = servers.servers.filter((server) => server !== primary);
  for (const { pid } of replicas) process.kill(pid ?? 0, 'SIGSTOP');
  const refused = { code: 'job_store_unavailable', message: /0 of 1 replicas have the change/ };
  const job = input();
  await t.rejects(first.createJob(job), refused);
  await t.rejects(second.findCreated(idempotency), refused);
  await t.rejects(second.createJob(input()), refused);
  for (const { pid } of replicas) process.kill(pid ?? 0, 'SIGCONT');
  t.match(await untilDone(() => second.findCreated(idempotency)), { id: job.id });
  t.match(await second.createJob(input()), { job: { id: job.id }, replayed: true });
});
