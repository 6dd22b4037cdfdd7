import t from 'tap';
import type { Job, Pool } from '../../../contracts/types.js';
import { gpuKinds, inOrder, slotsOf, waitOf } from './fleet.js';

t.test('slots of a worker', async (t) => {
  const worker = { slots: 3, used_slots: 1, draining: false, problem: null };
  t.strictSame(slotsOf(worker), ['used', 'free', 'free']);
  t.strictSame(slotsOf({ ...worker, draining: true }), ['used', 'draining', 'draining']);
  t.strictSame(slotsOf({ ...worker, draining: true, problem: 'stuck' }), ['used', 'problem', 'problem']);
  t.strictSame(slotsOf({ ...worker, slots: 0 }), ['used'], 'a held slot is shown, whatever it offers');
});

const job = (id: string, queuePosition: number | null, pool = 'a', min = 2) =>
  ({
    id,
    queue_position: queuePosition,
    created_at: id,
    state: queuePosition === null ? 'provisioning' : 'queued',
    spec: { resources: { pool, ranks: { min } } },
  }) as unknown as Job;

t.test('the queue has the order of the pools', async (t) => {
  const jobs = [job('5', null), job('4', 2), job('3', null), job('2', 1, 'b'), job('1', 1)];
  t.strictSame(
    inOrder(jobs).map(({ id }) => id),
    ['1', '4', '3', '5', '2'],
  );
});

const pool = (...groups: [slots: number, used: number][]) =>
  ({
    workers: groups.length,
    groups: groups.map(([slots, usedSlots]) => ({ slots, used_slots: usedSlots })),
  }) as unknown as Pool;

t.test('why a job waits', async (t) => {
  t.equal(waitOf(job('a', null), null), 'has its slots, begins');
  t.equal(waitOf(job('a', 1), null), 'the pool has no workers');
  t.equal(waitOf(job('a', 1), pool()), 'the pool has no workers');
  t.equal(
    waitOf(job('a', 1, 'a', 5), pool([4, 0], [3, 0])),
    'needs 5 slots of equal numerics, the pool has 4',
    'ranks of a job run in one group',
  );
  t.equal(waitOf(job('a', 1), pool([4, 3], [1, 0])), 'needs 2 slots, 1 is free');
  t.match(waitOf(job('a', 1), pool([4, 2])), /^others come first/);
});

t.test('GPUs by kind, with their problems', async (t) => {
  const gpu = (uuid: string, name: string, problem: string | null = null) => ({
    uuid,
    name,
    memory_bytes: 80,
    driver: '1',
    problem,
  });
  t.strictSame(gpuKinds([gpu('1', 'H100'), gpu('2', 'L4'), gpu('3', 'H100', 'Xid 79')]), [
    { name: 'H100', memory_bytes: 80, count: 2, problems: [{ uuid: '3', problem: 'Xid 79' }] },
    { name: 'L4', memory_bytes: 80, count: 1, problems: [] },
  ]);
});
