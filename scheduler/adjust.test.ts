import t from 'tap';
import { adjust } from './adjust.js';
import { demandOf, runningOf, snapshotOf, waitingOf, workerOf } from './testing/pool.js';
import type { RunningJob, Snapshot } from './types.js';

const GIB = 2 ** 30;
const workers = [workerOf('a', { slots: 4 }), workerOf('b', { slots: 4 }), workerOf('c', { slots: 2 })];

/** Returns the adjusted placements as text; null if the job is released. */
function adjusted(job: RunningJob, fields: Partial<Snapshot> = {}): string | null {
  const placements = adjust(snapshotOf({ workers, running: [job], ...fields }), job.id);
  return placements?.map(({ worker_id, ranks }) => `${worker_id}:${ranks}`).join(' ') ?? null;
}

t.test('a job keeps its slots and grows into free ones up to its maximum', async (t) => {
  t.equal(adjusted(runningOf('r', { a: 4, b: 1 })), 'a:4 b:1');
  t.equal(adjusted(runningOf('r', { a: 2 }, { demand: demandOf(1, 7) })), 'a:4 b:3');
  t.equal(
    adjusted(runningOf('r', { a: 2 }, { demand: demandOf(1, 7) }), { waiting: [waitingOf('w')] }),
    'a:2',
    'no growth while other jobs wait for the group',
  );
  const elsewhere = { waiting: [waitingOf('w', { demand: demandOf(11) })] };
  t.equal(adjusted(runningOf('r', { a: 2 }, { demand: demandOf(1, 7) }), elsewhere), 'a:4 b:3');
});

t.test('a preemption request shrinks the job in whole expert sets, the last placements first', async (t) => {
  const wide = { demand: demandOf(2, 8) };
  t.equal(adjusted(runningOf('r', { a: 4, b: 4 }, { demand: demandOf(1, 3) })), 'a:3');
  const asked = (ranks: number, fields: object = wide) =>
    adjusted(runningOf('r', { a: 4, b: 4 }, { ...fields, request: { ranks, for: 'w' } }));
  t.equal(asked(5), 'a:4 b:1');
  t.equal(asked(5, { demand: demandOf(2, 8, { multiple: 2 }) }), 'a:4');
  t.equal(asked(0), null, 'the job is released');
  t.equal(asked(1), null, 'fewer than its minimum');
});

t.test('placements on workers that are gone, draining or of another group are replaced', async (t) => {
  const job = runningOf('r', { a: 4, gone: 2 }, { demand: demandOf(5, 6) });
  t.equal(adjusted(job), 'a:4 b:2'.replace('b:2', 'c:2'), 'on the fullest worker with room');
  const draining = [workerOf('a', { slots: 4 }), workerOf('b', { schedulable: false })];
  t.equal(adjusted(runningOf('r', { a: 4, b: 1 }, { demand: demandOf(5) }), { workers: draining }), null);
  t.equal(
    adjusted(runningOf('r', { b: 1, a: 2 }), { workers: draining }),
    'b:1 a:2',
    'the leader keeps running while its worker drains',
  );
  const other = [workerOf('a', { slots: 4 }), workerOf('b', { group: 'other' })];
  t.equal(adjusted(job, { workers: other }), null);
  t.equal(adjusted(job, { workers: [] }), null);
});

t.test('a job that moves gets its reserved placements, or is released for another leader', async (t) => {
  const wide = { demand: demandOf(1, 8) };
  const moving = (to: string) => ({
    ...wide,
    move: [
      { worker_id: to, ranks: 1 },
      { worker_id: 'c', ranks: 2 },
    ],
  });
  t.equal(adjusted(runningOf('r', { a: 1, b: 2 }, moving('a'))), 'a:1 c:2');
  t.equal(adjusted(runningOf('r', { a: 1, b: 2 }, moving('b'))), null);
  const left = workers.map((worker) => ({ ...worker, schedulable: worker.id !== 'c' }));
  const stays = adjusted(runningOf('r', { a: 1, b: 2 }, moving('a')), { workers: left });
  t.equal(stays, 'a:4 b:4', 'a target that drains ends the move');
});

t.test('placements below the minimum are replaced even while other jobs wait', async (t) => {
  const job = runningOf('r', { a: 2, gone: 4 }, { demand: demandOf(3, 6) });
  t.equal(adjusted(job, { waiting: [waitingOf('w')] }), 'a:3');
});

t.test('on GPUs the remaining ranks have enough memory', async (t) => {
  const memory = [
    { ranks: 1, bytes: 80 * GIB },
    { ranks: 2, bytes: 40 * GIB },
    { ranks: 4, bytes: 20 * GIB },
  ];
  const gpus = (ids: Record<string, number>) =>
    Object.entries(ids).map(([id, size]) => workerOf(id, { slots: 1, gpu_bytes: size * GIB }));
  const job = runningOf('r', { a: 1, b: 1 }, { demand: demandOf(1, 4, { memory }) });
  t.equal(adjusted(job, { workers: gpus({ a: 40, c: 24 }) }), null, 'two ranks do not fit on the small GPU');
  t.equal(adjusted(job, { workers: gpus({ a: 40, c: 24, d: 40 }) }), 'a:1 d:1');
  t.equal(adjusted(job, { workers: gpus({ a: 40, b: 40, c: 24, d: 24 }) }), 'a:1 b:1 c:1 d:1');
});

t.test('avoided workers are not added, and a job without placements has none', async (t) => {
  const job = runningOf('r', { a: 4 }, { demand: demandOf(1, 8), avoid: [['a', 'b']] });
  t.equal(adjusted(job), 'a:4 c:2');
  t.equal(adjusted(runningOf('r', {}, { demand: demandOf(1) })), null);
  t.equal(adjust(snapshotOf({ workers }), 'unknown'), null);
});
