import t from 'tap';
import type { Problem } from '../../../contracts/index.js';
import { claimAllocated } from '../../../state/testing/pools.js';
import { testGpu, testWorker } from '../../../state/testing/workers.js';
import { startTestStack } from '../../testing/stack.js';

t.test('pools and workers', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const get = (url: string) => stack.request({ method: 'GET', url });
  t.strictSame((await get('/v1/pools')).json(), { data: [] });
  for (const [id, slots, pool] of [
    ['a', 4, 'default'],
    ['b', 2, 'default'],
  ] as const)
    await stack.store.announceWorker(testWorker(id, slots, { pool }), 60_000);
  await stack.store.announceWorker(testWorker('b2', 1, { numerics: 'cpu-avx2/2' }), 60_000);
  const gpus = [testGpu('GPU-1'), testGpu('GPU-2', { problem: 'memory errors' })];
  const onGpu = { pool: 'other', numerics: 'cuda-sm90/1', gpus };
  await stack.store.announceWorker(testWorker('c', 2, onGpu), 60_000);
  const job = await stack.createJob();
  await claimAllocated(stack.store, job);
  await stack.createJob();
  const machines = {
    types: [{ type: 'g6', running: 1, starting: 0, requested: 2, terminating: 0 }],
    problems: [{ type: 'g6', code: 'quota' as const, message: 'the limit is 0' }],
    pods: [
      {
        ...{ name: 'p-1', type: 'g6', node: null, phase: 'pending' as const, reason: 'Unschedulable' },
        ...{ message: 'no node', log: null },
      },
    ],
  };
  await stack.store.noteMachines('other', machines);

  const pools = await get('/v1/pools');
  t.equal(pools.statusCode, 200);
  t.strictSame(pools.json(), {
    data: [
      {
        ...{ name: 'default', workers: 3, slots: 7, used_slots: 2, running: 1, waiting: 1 },
        groups: [
          { numerics: null, workers: 2, slots: 6, used_slots: 2, gpus: [] },
          { numerics: 'cpu-avx2/2', workers: 1, slots: 1, used_slots: 0, gpus: [] },
        ],
        machines: null,
      },
      {
        ...{ name: 'other', workers: 1, slots: 2, used_slots: 0, running: 0, waiting: 0 },
        groups: [
          {
            ...{ numerics: 'cuda-sm90/1', workers: 1, slots: 2, used_slots: 0 },
            gpus: [{ name: 'NVIDIA H100 80GB HBM3', memory_bytes: 80 * 2 ** 30, count: 2, unhealthy: 1 }],
          },
        ],
        machines,
      },
    ],
  });
  const workers = await get('/v1/workers');
  t.match(workers.json(), {
    data: [
      { id: 'a', pool: 'default', slots: 4, used_slots: 0, draining: false, last_seen: String },
      { id: 'b', used_slots: 2, numerics: null, gpus: [] },
      { id: 'b2', numerics: 'cpu-avx2/2' },
      { id: 'c', pool: 'other', numerics: 'cuda-sm90/1', gpus },
    ],
  });
  t.match((await get('/v1/workers?pool=other')).json(), { data: [{ id: 'c' }] });
  t.equal((await get('/v1/workers?pool=NO')).json<Problem>().code, 'invalid_parameter');
});
