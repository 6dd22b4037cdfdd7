/** Records of workers and pools. */

import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import { startTestRedis } from '../../platform/testing/redis.js';
import { type JobStore, openJobStore } from '../job-store.js';
import { testGpu, testWorker } from '../testing/workers.js';

const LEASE_MS = 60_000;
const server = await startTestRedis();
t.teardown(() => server.stop());

/** Opens a store with workers, given by name and slots. */
async function pool(t: Test, workers: Record<string, number>): Promise<JobStore> {
  const store = await openJobStore({ url: server.url, prefix: `{${ulid()}}` });
  t.teardown(() => store.close());
  for (const [id, slots] of Object.entries(workers))
    await store.announceWorker(testWorker(id, slots), LEASE_MS);
  return store;
}

t.test('a worker is listed from its announcement until it expires or leaves', async (t) => {
  const store = await pool(t, { a: 4 });
  await store.announceWorker(testWorker('b', 2, { pool: 'other', draining: true }), LEASE_MS);
  await store.announceWorker(testWorker('c', 1), 1);
  await sleep(5);
  t.match(await store.listWorkers(), [
    { id: 'a', pool: 'default', slots: 4, used_slots: 0, draining: false, address: '127.0.0.1' },
    { id: 'b', pool: 'other', slots: 2, draining: true },
  ]);
  t.match(await store.listWorkers('other'), [{ id: 'b' }]);
  t.match(await store.listPools(), [
    { name: 'default', running: 0, waiting: 0 },
    { name: 'other', running: 0, waiting: 0 },
  ]);
  await store.withdrawWorker('b');
  await store.withdrawWorker('b');
  t.strictSame(
    (await store.listPools()).map(({ name }) => name),
    ['default'],
  );
  const [seen] = await store.listWorkers();
  await store.announceWorker(testWorker('a', 3), LEASE_MS);
  t.match(await store.listWorkers(), [{ id: 'a', slots: 3 }]);
  t.ok(seen && !Number.isNaN(Date.parse(seen.last_seen)));
});

t.test('the numerics fingerprint and the GPUs of a worker are listed', async (t) => {
  const store = await pool(t, {});
  const computes = {
    numerics: 'cuda-sm90/1',
    gpus: [testGpu('GPU-1'), testGpu('GPU-2', { problem: 'hot' })],
  };
  await store.announceWorker(testWorker('a', 2, computes), LEASE_MS);
  await store.announceWorker(testWorker('b', 2), LEASE_MS);
  t.match(await store.listWorkers(), [computes, { id: 'b', numerics: null, gpus: [] }]);
});

t.test('the scheduler knows the topology that workers report', async (t) => {
  const store = await pool(t, {});
  const announce = (topology: string[]) => store.announceWorker(testWorker('a', 2, { topology }), LEASE_MS);
  await announce(['zone-a', 'n1']);
  await store.announceWorker(testWorker('b', 2), LEASE_MS);
  const { version, snapshot } = await store.readSnapshot('default', 0);
  t.same(
    snapshot.workers.map(({ topology }) => topology),
    [['zone-a', 'n1'], []],
  );
  await announce(['zone-a', 'n1']);
  t.equal((await store.readSnapshot('default', 0)).version, version, 'the same again');
  await announce(['zone-b', 'n2']);
  t.not((await store.readSnapshot('default', 0)).version, version, 'a decision on the old one is refused');
});
