import t, { type Test } from 'tap';
import { REDIS_PREFIX } from '../contracts/index.js';
import { createLogger } from '../platform/logging/logging.js';
import { connectRedis, disconnectRedis } from '../platform/redis/connect.js';
import { startTestRedis } from '../platform/testing/redis.js';
import { until, untilDone } from '../platform/testing/waiting.js';
import { openJobStore } from './job-store.js';
import type { Control } from './jobs/control.js';
import { startOutboxRelay } from './streams/outbox-relay.js';
import { executionAt, noteExecutions } from './testing/executions.js';
import { createTestJob } from './testing/jobs.js';
import { decide } from './testing/pools.js';
import { testWorker } from './testing/workers.js';

const LEASE_MS = 60_000;
const log = createLogger({ level: 'silent', name: 'test' });

/** Opens a store on a Redis of its own, and a connection to it. */
async function opened(t: Test) {
  const server = await startTestRedis();
  t.teardown(() => server.stop());
  const store = noteExecutions(await openJobStore({ url: server.url, log }));
  t.teardown(() => store.close());
  const redis = await connectRedis(server.url, 'commands');
  t.teardown(() => disconnectRedis(redis));
  return { store, redis };
}

t.test('during and after an outage of Redis', async (t) => {
  const server = await startTestRedis();
  t.teardown(() => server.stop());
  const store = noteExecutions(await openJobStore({ url: server.url, log }));
  t.teardown(() => store.close());
  const delivered: string[] = [];
  const deliver = async ({ job_id }: { job_id: string }) => void delivered.push(job_id);
  const relay = startOutboxRelay({ url: server.url, deliver, log });
  t.teardown(() => relay.stop());

  const job = await createTestJob(store);
  await store.claimAttempt(job.id, 1, 'a', LEASE_MS);
  const controls: Control[] = [];
  await store.watchControl(job.id, (control) => controls.push(control));
  const before = await store.getJob(job.id);

  await server.kill();
  const calls: (() => Promise<unknown>)[] = [
    () => store.getJob(job.id),
    () => store.report(job.id, executionAt(job.id, 1), [], null),
    () => store.renewLease(job.id, executionAt(job.id, 1), LEASE_MS),
    () => store.listApiKeys(),
    () => store.check(),
    () => store.waitStream(job.id, null, { timeoutMs: 100 }),
  ];
  await Promise.all(calls.map((call) => t.rejects(call, { code: 'job_store_unavailable' })));
  const seenBefore = controls.length;

  await server.start();
  await untilDone(() => store.check());
  t.same(await store.getJob(job.id), before, 'nothing was lost');
  // Another program requests it before this one's subscription is active again, so its message is never received.
  await store.requestPause(job.id);
  await until(() => controls.slice(seenBefore).some(({ desired }) => desired === 'pause'));
  t.pass('the wish is known all the same');
  t.match(
    await store.renewLease(job.id, executionAt(job.id, 1), LEASE_MS),
    { desired: 'pause' },
    'the epoch is still valid',
  );

  const later = await createTestJob(store);
  await store.announceWorker(testWorker('w', 1), LEASE_MS);
  await decide(store);
  await until(() => delivered.includes(later.id));
  t.pass('the relay works on');
});

t.test('a Redis without memory refuses whole commands, never parts of them', async (t) => {
  const { store, redis } = await opened(t);

  const job = await createTestJob(store);
  await store.claimAttempt(job.id, 1, 'a', LEASE_MS);
  const checkpoint = {
    id: 'ckpt_1',
    job_id: job.id,
    step: 1,
    world_size: 1,
    state_digest: '0'.repeat(32),
    bytes: 1,
    committed_at: job.created_at,
    pinned: false,
    damaged: false,
    prefix: 'p',
  };
  await store.commitCheckpoint(job.id, executionAt(job.id, 1), checkpoint);
  const everything = async () => ({
    job: await store.getJob(job.id),
    stream: await store.readStream(job.id, null, 100),
    keys: (await redis.keys('*')).sort(),
  });
  const before = await everything();

  await redis.config('SET', 'maxmemory', '1');
  const writes: (() => Promise<unknown>)[] = [
    () => createTestJob(store),
    () => store.createJob({ id: 'job_x', spec: job.spec }),
    () => store.requestPause(job.id),
    () => store.report(job.id, executionAt(job.id, 1), [], null),
    () => store.commitCheckpoint(job.id, executionAt(job.id, 1), { ...checkpoint, id: 'ckpt_2' }),
    () => store.claimAttempt(job.id, 1, 'a', LEASE_MS),
    () => store.check(),
  ];
  for (const write of writes) await t.rejects(write, { code: 'redis_full' });
  await redis.config('SET', 'maxmemory', '0');
  t.same(await everything(), before, 'no key, field or event has changed');
  t.match(
    await store.renewLease(job.id, executionAt(job.id, 1), LEASE_MS),
    { desired: 'run' },
    'and the work continues',
  );
});

t.test('a Redis without memory renews leases, and takes back and ends jobs', async (t) => {
  const { store, redis } = await opened(t);
  await store.announceWorker(testWorker('a', 8), LEASE_MS);
  const held = async () => {
    const { id } = await createTestJob(store);
    await store.claimAttempt(id, 1, 'a', LEASE_MS);
    return { id, execution: executionAt(id, 1) };
  };
  const [running, released, lost, ended] = [await held(), await held(), await held(), await held()];
  await store.renewLease(lost.id, lost.execution, 1);
  await until(
    async () =>
      (await store.now()) > Number(await redis.hget(`${REDIS_PREFIX}:job:${lost.id}`, 'lease_until')),
  );

  await redis.config('SET', 'maxmemory', '1');
  t.match(await store.renewLease(running.id, running.execution, LEASE_MS), { desired: 'run' });
  t.match(await store.releaseAttempt(released.id, released.execution, { to: 'queued' }), { state: 'queued' });
  t.strictSame(await store.requeueAbandoned(0), [lost.id]);
  t.match(await store.finishJob(ended.id, ended.execution, 'failed'), { state: 'failed' });
  await store.announceWorker(testWorker('a', 8), LEASE_MS);
  t.match(await store.acquireLeaderLease('scheduler', 'one', LEASE_MS), { leads: true });
  t.equal((await store.readSnapshot('default', 0)).snapshot.waiting.length, 2);
  await store.withdrawWorker('a');
  t.strictSame(await store.listWorkers(), []);
});

t.test('a Redis without memory can be read, and what has ended can be deleted', async (t) => {
  const { store, redis } = await opened(t);
  const { id, spec } = await createTestJob(store);
  await store.claimAttempt(id, 1, 'a', LEASE_MS);
  await store.finishJob(id, executionAt(id, 1), 'failed');

  await redis.config('SET', 'maxmemory', '1');
  t.match(await store.getJob(id), { state: 'failed' });
  t.ok((await store.readStream(id, null, 100)).length > 0);
  await store.deleteJob(id, { artifacts: true });
  t.equal(await store.getJob(id), null);
  t.equal(await store.deleteDataset(spec.data.dataset ?? ''), true);
});

t.test('a position is lost with its stream, or with the end of it, and waiters are woken', async (t) => {
  const server = await startTestRedis();
  t.teardown(() => server.stop());
  const store = await openJobStore({ url: server.url, log });
  t.teardown(() => store.close());
  const job = await createTestJob(store);
  const newest = async () => (await store.readStream(job.id, null, 10)).at(-1)?.position ?? null;
  const lost = { code: 'position_lost', message: /start again without `after`/ };

  const before = await newest();
  const waiting = store.waitStream(job.id, before, { timeoutMs: 60_000 });
  await server.forget();
  t.strictSame(await store.readStream(job.id, before, 10), [], 'the job does not exist');
  await store.restoreJob({ job, checkpoints: [], idempotency: null });
  t.equal(await waiting, true);
  await t.rejects(store.readStream(job.id, before, 10), lost);
  await t.rejects(store.readStream(job.id, before, 10, ['log']), lost);

  t.match(await store.readStream(job.id, null, 10), [{ seq: 1, type: 'job.recovered' }]);
  const position = await newest();
  t.strictSame(await store.readStream(job.id, position, 10), [], 'the position is the end');
  // Simulates a crash of a Redis that syncs its disk once a second.
  const redis = await connectRedis(server.url, 'commands');
  await redis.hset(`${REDIS_PREFIX}:job:${job.id}`, 'seq', 0);
  await disconnectRedis(redis);
  t.equal(await store.waitStream(job.id, position, { timeoutMs: 60_000 }), true);
  await t.rejects(store.readStream(job.id, position, 10), lost);
});

t.test('a server that does not listen', async (t) => {
  await t.rejects(openJobStore({ url: 'unix:///nowhere/redis.sock' }), { code: 'job_store_unavailable' });
  await t.rejects(openJobStore({ url: 'redis://127.0.0.1:1' }), { code: 'job_store_unavailable' });
  await t.rejects(openJobStore({ url: 'http://127.0.0.1:1' }), { code: 'invalid_configuration' });
});
