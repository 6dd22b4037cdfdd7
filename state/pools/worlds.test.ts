/** The rendezvous: sealing a world, its validity, and the notification of members. */
import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import { startTestRedis } from '../../platform/testing/redis.js';
import { type JobStore, openJobStore } from '../job-store.js';
import { createTestJob } from '../testing/jobs.js';
import type { WorldPlan } from './worlds.js';

const LEASE_MS = 60_000;
const server = await startTestRedis();
t.teardown(() => server.stop());

async function freshStore(t: Test): Promise<JobStore> {
  const store = await openJobStore({ url: server.url, prefix: `{${ulid()}}` });
  t.teardown(() => store.close());
  return store;
}

async function claimed(store: JobStore, worker: string, leaseMs = LEASE_MS) {
  const { id } = await createTestJob(store);
  return { id, execution: await claim(store, id, worker, leaseMs) };
}

async function claim(store: JobStore, id: string, worker: string, leaseMs = LEASE_MS) {
  const reply = await store.claimAttempt(id, 1, worker, leaseMs);
  if (!reply.granted) throw new Error(`refused: ${reply.code}`);
  return reply.execution;
}

const plan = (worldId: string, ...members: string[]): WorldPlan => ({
  world_id: worldId,
  token: `token of ${worldId}`,
  leader: { worker_id: 'leader', address: '10.0.0.1', port: 1234 },
  members: members.map((workerId, i) => ({ worker_id: workerId, ranks: [i + 1] })),
});

t.test('members find the sealed world, other workers find none', async (t) => {
  const store = await freshStore(t);
  const { id, execution } = await claimed(store, 'leader');
  const sealed = { job_id: id, execution, ...plan('w1', 'a', 'b') };
  await store.sealWorld(id, execution, plan('w1', 'a', 'b'));
  t.strictSame(await store.findWorlds('a'), [sealed]);
  t.strictSame(await store.findWorlds('b'), [sealed]);
  t.strictSame(await store.findWorlds('leader'), []);
});

t.test('a world is sealed once; the next one replaces it and its members', async (t) => {
  const store = await freshStore(t);
  const { id, execution } = await claimed(store, 'leader');
  for (const attempt of ['first', 'a call whose reply was lost']) {
    await store.sealWorld(id, execution, plan('w1', 'a', 'b'));
    t.strictSame(await store.findWorlds('a'), [{ job_id: id, execution, ...plan('w1', 'a', 'b') }], attempt);
  }
  const second = { job_id: id, execution, ...plan('w2', 'b') };
  await store.sealWorld(id, execution, plan('w2', 'b'));
  t.strictSame(await store.findWorlds('a'), []);
  t.strictSame(await store.findWorlds('b'), [second]);
  await store.closeWorld(id, 'w1');
  t.strictSame(await store.findWorlds('b'), [second], 'the end of an older world changes nothing');
  await store.closeWorld(id, 'w2');
  t.strictSame(await store.findWorlds('b'), []);
});

t.test('a world ends with the epoch and the lease of its leader', async (t) => {
  const store = await freshStore(t);
  const { id, execution } = await claimed(store, 'leader');
  await store.sealWorld(id, execution, plan('w1', 'a'));
  const next = await claim(store, id, 'leader');
  t.strictSame(await store.findWorlds('a'), [], 'another epoch');
  await t.rejects(store.sealWorld(id, execution, plan('w2', 'a')), { code: 'stale_epoch' });
  await store.sealWorld(id, next, plan('w3', 'a'));
  await store.releaseAttempt(id, next, { to: 'queued' });
  t.strictSame(await store.findWorlds('a'), [], 'no worker leads the job');

  const short = await claimed(store, 'leader', 0);
  await store.sealWorld(short.id, short.execution, plan('w4', 'a'));
  t.strictSame(await store.findWorlds('a'), [], 'the lease has expired');
});

t.test('a member is notified of a new world', async (t) => {
  const store = await freshStore(t);
  const { id, execution } = await claimed(store, 'leader');
  let heard: () => void = () => undefined;
  const message = new Promise<void>((resolve) => {
    heard = resolve;
  });
  const unwatch = await store.watchWorlds('a', () => heard());
  await store.sealWorld(id, execution, plan('w1', 'a'));
  await message;
  await unwatch();
  t.equal((await store.findWorlds('a')).length, 1);
});
