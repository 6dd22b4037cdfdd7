/** Failover that loses the newest writes: lost entries and later entries with the same number are told apart. */
import t, { type Test } from 'tap';
import type { Job } from '../contracts/index.js';
import { startTestRedis, type TestRedis } from '../platform/testing/redis.js';
import { place } from '../scheduler/place.js';
import { type JobStore, openJobStore } from './job-store.js';
import { createTestJob } from './testing/jobs.js';
import { workerWrites } from './testing/worker-writes.js';
import { testWorker } from './testing/workers.js';

const LEASE_MS = 60_000;

async function openStore(t: Test): Promise<{ redis: TestRedis; store: JobStore }> {
  const redis = await startTestRedis();
  const store = await openJobStore({ url: redis.url });
  t.teardown(async () => {
    await store.close();
    await redis.stop();
  });
  return { redis, store };
}

async function claimed(store: JobStore, id: string, worker: string) {
  const claim = await store.claimAttempt(id, 1, worker, LEASE_MS);
  if (!claim.granted) throw new Error('not granted');
  return claim;
}

t.test(
  'of two workers with the same epoch only the one whose claim the server knows may write',
  async (t) => {
    const { redis, store } = await openStore(t);
    const { id } = await createTestJob(store);
    const failOver = await redis.leaveReplicaBehind();
    const lost = await claimed(store, id, 'a');
    await failOver();
    const held = await claimed(store, id, 'b');
    t.equal(held.job.epoch, lost.job.epoch);
    for (const [name, write] of Object.entries(workerWrites(store, id, lost.execution)))
      await t.rejects(write(), { code: 'stale_epoch' }, name);
    t.match(await store.renewLease(id, held.execution, LEASE_MS), { state: 'provisioning' });
  },
);

t.test('positions of lost entries are refused, even when the stream has grown beyond them', async (t) => {
  const { redis, store } = await openStore(t);
  const { id } = await createTestJob(store);
  const { execution } = await claimed(store, id, 'a');
  const append = (n: number) => store.appendEvent(id, execution, { type: 'test.event', data: { n } });
  const positions = async () => (await store.readStream(id, null, 1000)).map(({ position }) => position);
  await append(0);
  const kept = await positions();
  const failOver = await redis.leaveReplicaBehind();
  for (let n = 0; n < 3; n += 1) await append(n);
  const lost = (await positions()).slice(kept.length);
  t.equal(lost.length, 3);
  await failOver();
  for (let grown = 0; grown < 6; grown += 1) {
    for (const position of lost) {
      await t.rejects(store.readStream(id, position, 10), { code: 'position_lost' }, `${position}, ${grown}`);
      t.ok(await store.waitStream(id, position, { timeoutMs: 100 }), 'a waiter is woken');
    }
    const now = await positions();
    t.same(now.slice(0, kept.length), kept);
    const [stream, seq, stamp] = now.at(-1)?.split('-') ?? [];
    const ahead = (Number.parseInt(`${stamp}`, 16) + 1_000_000).toString(16);
    const refused = store.readStream(id, `${stream}-${seq}-${ahead}`, 10);
    await t.rejects(refused, { code: 'position_lost' }, 'of a server whose clock was ahead');
    for (const [at, position] of now.entries()) {
      const rest = await store.readStream(id, position, 1000);
      t.same(
        rest.map((entry) => entry.position),
        now.slice(at + 1),
      );
    }
    await append(grown);
  }
});

t.test(
  'a position whose entry was dropped continues with the kept entries, unless it was lost',
  async (t) => {
    const { redis, store } = await openStore(t);
    const { id } = await createTestJob(store);
    const { execution } = await claimed(store, id, 'a');
    const line = (n: number) => ({
      rank: 0,
      at: new Date().toISOString(),
      stream: 'stdout' as const,
      message: `line ${n}`,
      truncated: false,
      dropped: 0,
    });
    const lines = (count: number) => Array.from({ length: count }, (_, n) => line(n));
    const lastPosition = async () => (await store.readStream(id, null, 1000)).at(-1)?.position as string;
    const failOver = await redis.leaveReplicaBehind();
    await store.appendLogs(id, execution, lines(2));
    const lost = await lastPosition();
    await failOver();
    await store.appendEvent(id, execution, { type: 'test.event' });
    await store.appendLogs(id, execution, lines(1));
    const kept = await lastPosition();
    for (let n = 0; n < 11; n += 1) await store.appendLogs(id, execution, lines(1000));
    const [oldest] = await store.readStream(id, null, 1, ['log']);
    t.ok((oldest?.seq ?? 0) > 100, `the oldest kept line is number ${oldest?.seq}`);
    t.same(await store.readStream(id, kept, 1), [oldest]);
    await t.rejects(store.readStream(id, lost, 1), { code: 'position_lost' });
  },
);

t.test('no other change gets the version of a lost change', async (t) => {
  const { redis, store } = await openStore(t);
  const { id } = await createTestJob(store);
  await store.requestPause(id);
  const failOver = await redis.leaveReplicaBehind();
  const lost = await store.resumeJob(id);
  await failOver();
  const { state_version } = (await store.getJob(id)) as Job;
  t.ok(
    await store.waitVersion(id, lost.state_version, { timeoutMs: 100 }),
    'a client that has seen it is notified of the loss',
  );
  t.notOk(await store.waitVersion(id, state_version, { timeoutMs: 100 }));
  const other = await store.requestCancel(id);
  t.not(other.state_version, lost.state_version);
  t.ok(other.state_version > state_version);
  t.ok(await store.waitVersion(id, lost.state_version, { timeoutMs: 100 }));
  const condition = { if_versions: [lost.state_version] };
  for (const request of [store.requestPause, store.resumeJob, store.requestCancel])
    await t.rejects(request(id, condition), { code: 'version_mismatch' });
  await store.deleteJob(id, { artifacts: false, if_versions: [other.state_version] });
});

t.test('a request for a checkpoint is never taken for a lost one', async (t) => {
  const { redis, store } = await openStore(t);
  const { id } = await createTestJob(store);
  const { execution } = await claimed(store, id, 'a');
  await store.transition(id, execution, 'starting');
  await store.transition(id, execution, 'running');
  const requested = async () => {
    await store.requestCheckpoint(id);
    return (await store.renewLease(id, execution, LEASE_MS)).save_request;
  };
  const kept = await requested();
  const failOver = await redis.leaveReplicaBehind();
  const lost = [await requested(), await requested()];
  await failOver();
  const next = await requested();
  t.ok(next > Math.max(kept, ...lost), `${next}, after ${kept}, ${lost.join()}`);
});

t.test('a decision on a pool from before a failover is not applied', async (t) => {
  const { redis, store } = await openStore(t);
  await store.announceWorker(testWorker('a', 2), LEASE_MS);
  const { id } = await createTestJob(store);
  const failOver = await redis.leaveReplicaBehind();
  await store.announceWorker(testWorker('b', 2), LEASE_MS);
  const { version, snapshot } = await store.readSnapshot('default', 0);
  const decision = place(snapshot);
  t.same(
    decision.starts.map(({ job_id }) => job_id),
    [id],
  );
  await failOver();
  await store.announceWorker(testWorker('c', 2), LEASE_MS);
  const options = { claim_ms: LEASE_MS, waiting: [] };
  t.notOk(await store.applyDecision('default', version, decision, options));
  const now = await store.readSnapshot('default', 0);
  t.ok(await store.applyDecision('default', now.version, place(now.snapshot), options));
});
