import fc from 'fast-check';
import t from 'tap';
import { countRanks } from './order.js';
import { place } from './place.js';
import { demandOf, emptyPools, NOW, runningOf, snapshotOf, waitingOf, workerOf } from './testing/pool.js';
import type { RunningJob, Snapshot } from './types.js';
import { vacatable, vacate } from './vacate.js';

const workers = [workerOf('a'), workerOf('b'), workerOf('c')];

/** Returns the new placements as text by job; null if the workers can't be vacated. */
function movesFrom(ids: readonly string[], snapshot: Partial<Snapshot>): Record<string, string> | null {
  const moves = vacate(snapshotOf({ workers, ...snapshot }), ids);
  const textOf = (placements: RunningJob['placements']) =>
    placements.map(({ worker_id, ranks }) => `${worker_id}:${ranks}`).join(' ');
  return moves && Object.fromEntries(moves.map(({ job_id, placements }) => [job_id, textOf(placements)]));
}

t.test('ranks move to the fullest machine that runs jobs and has room', async (t) => {
  const running = [runningOf('one', { a: 2 }), runningOf('two', { b: 5 })];
  t.strictSame(movesFrom(['a'], { running }), { one: 'b:2' });
  t.strictSame(movesFrom(['b'], { running }), { two: 'a:5' });
  t.equal(movesFrom(['a'], { running: [runningOf('one', { a: 2 })] }), null, 'not to an idle machine');
  const fuller = [...running, runningOf('three', { c: 6 })];
  t.strictSame(movesFrom(['a'], { running: fuller }), { one: 'c:2' });
  const full = [runningOf('one', { a: 4 }), runningOf('two', { b: 5 }), runningOf('three', { c: 8 })];
  t.equal(movesFrom(['a'], { running: full }), null, 'they do not fit');
});

t.test('a job keeps its ranks on other machines, with its leader, and its number of ranks', async (t) => {
  const small = runningOf('small', { c: 1 });
  const wide = { demand: demandOf(1, 9) };
  const member = [runningOf('gang', { b: 5, a: 2 }, wide), small];
  t.strictSame(movesFrom(['a'], { running: member }), { gang: 'b:7' });
  const leader = [runningOf('gang', { a: 2, b: 5 }, wide), small];
  t.strictSame(movesFrom(['a'], { running: leader }), { gang: 'b:7' });
  t.strictSame(movesFrom(['a', 'b'], { running: leader }), { gang: 'c:7' }, 'all its ranks');
});

t.test('two jobs do not get the same slots', async (t) => {
  const running = [runningOf('one', { a: 2 }), runningOf('two', { a: 2 }), runningOf('big', { b: 5 })];
  t.equal(movesFrom(['a'], { running }), null);
  t.equal(movesFrom(['a'], { running: [...running, runningOf('other', { c: 8 })] }), null);
  t.strictSame(movesFrom(['a'], { running: [...running, runningOf('other', { c: 6 })] }), {
    one: 'c:2',
    two: 'b:2',
  });
});

t.test('groups, GPU memory and avoided pairs are respected', async (t) => {
  const groups = [workerOf('a'), workerOf('b', { group: 'other' })];
  const running = [runningOf('one', { a: 2 }), runningOf('two', { b: 2 })];
  t.equal(movesFrom(['a'], { workers: groups, running }), null);
  const gpus = [workerOf('a', { gpu_bytes: 80 }), workerOf('b', { gpu_bytes: 40 })];
  const large = demandOf(2, 2, { memory: [{ ranks: 1, bytes: 60 }] });
  const onGpus = [runningOf('one', { a: 2 }, { demand: large }), runningOf('two', { b: 2 })];
  t.equal(movesFrom(['a'], { workers: gpus, running: onGpus }), null);
  t.strictSame(movesFrom(['b'], { workers: gpus, running: onGpus }), { two: 'a:2' });
  const avoid = [['b', 'c']] as const;
  const gang = [
    runningOf('gang', { a: 2, b: 2 }, { avoid }),
    runningOf('x', { c: 1 }),
    runningOf('y', { b: 5 }),
  ];
  t.equal(movesFrom(['a'], { running: gang }), null, 'one slot on b, and c must be avoided');
});

t.test('no machine is vacated while a job waits for its group, or a job there is not ready', async (t) => {
  const running = (fields: Partial<RunningJob>) => [
    runningOf('one', { a: 2 }, fields),
    runningOf('two', { b: 2 }),
  ];
  t.equal(
    movesFrom(['a'], { running: running({}), waiting: [waitingOf('w', { demand: demandOf(24) })] }),
    null,
  );
  t.strictSame(
    movesFrom(['a'], { running: running({}), waiting: [waitingOf('w', { demand: demandOf(25) })] }),
    { one: 'b:2' },
    'a job that no group could run does not wait for slots',
  );
  t.equal(movesFrom(['a'], { running: running({ may_change: false }) }), null);
  t.equal(movesFrom(['a'], { running: running({ request: { ranks: 0, for: 'w' } }) }), null);
  t.equal(movesFrom(['a'], { running: running({ move: [{ worker_id: 'c', ranks: 2 }] }) }), null);
});

t.test('machines that can be vacated together, the cheapest moves first', async (t) => {
  const machines = ['a', 'b', 'c', 'd'].map((id) => ({ id: `m-${id}`, workers: [id] }));
  const pool = snapshotOf({
    workers: [...workers, workerOf('d')],
    running: [
      runningOf('one', { a: 2 }),
      runningOf('gang', { b: 3, c: 5 }),
      runningOf('idle elsewhere', { gone: 2 }),
    ],
  });
  t.strictSame([...vacatable(pool, machines)], [['m-a', 2]], 'then b does not fit any more');
  const gang = { ...pool, running: [runningOf('gang', { a: 1, b: 2, c: 5 })] };
  t.strictSame([...vacatable(gang, machines)], [['m-a', 8]], 'no job moves twice');
  const two = {
    ...pool,
    running: [runningOf('x', { a: 1 }), runningOf('y', { b: 1 }), runningOf('z', { c: 6 })],
  };
  t.strictSame(
    [...vacatable(two, machines)],
    [
      ['m-a', 1],
      ['m-b', 1],
    ],
  );
  t.strictSame(
    [...vacatable(snapshotOf({ workers }), machines)],
    [],
    'idle machines are retired, not vacated',
  );
  const gangOf = (placed: Record<string, number>) => [runningOf('gang', placed)];
  const alone = runningOf('alone', { b: 3 });
  t.strictSame(
    [
      ...vacatable(
        { ...pool, running: [alone, ...gangOf({ a: 1, d: 7 }), runningOf('half', { c: 4 })] },
        machines,
      ),
    ],
    [
      ['m-b', 3],
      ['m-a', 8],
    ],
    'three ranks that restart cost less than eight, of which one moves',
  );
  const small = [workerOf('a', { slots: 2 }), workerOf('b'), workerOf('c')];
  const full = snapshotOf({
    workers: small,
    running: [...gangOf({ a: 1, c: 8 }), runningOf('alone', { b: 6 })],
  });
  t.strictSame([...vacatable(full, machines)], [['m-a', 9]], 'the cheapest does not fit');
});

/** Pools whose jobs run, as `place` started them. */
const runningPools = emptyPools.map((snapshot) => {
  const { starts } = place(snapshot);
  const running = starts.flatMap(({ job_id, placements, granted_priority }) => {
    const job = snapshot.waiting.find(({ id }) => id === job_id);
    const fields = { placements, granted_priority, may_change: true, request: null, move: null };
    return job ? [{ ...job, ...fields }] : [];
  });
  return { ...snapshot, waiting: [], running };
});

t.test(
  'in any pool: a move leaves the vacated worker, keeps all ranks, and takes no slot twice',
  async () => {
    fc.assert(
      fc.property(runningPools, fc.nat(), (snapshot, index) => {
        const id = snapshot.workers[index % snapshot.workers.length]?.id ?? '';
        const moves = vacate(snapshot, [id]);
        if (!moves) return true;
        const moved = new Map(moves.map(({ job_id, placements }) => [job_id, placements]));
        const used = new Map<string, number>();
        for (const job of snapshot.running) {
          const placements = moved.get(job.id) ?? job.placements;
          if (countRanks(placements) !== countRanks(job.placements)) return false;
          for (const { worker_id, ranks } of placements)
            used.set(worker_id, (used.get(worker_id) ?? 0) + ranks);
        }
        return !used.has(id) && snapshot.workers.every(({ id, slots }) => (used.get(id) ?? 0) <= slots);
      }),
      { numRuns: 500 },
    );
  },
);

t.test(
  'reserved slots are not given to other jobs, and a moving job neither grows nor shrinks',
  async (t) => {
    const moving = runningOf(
      'one',
      { a: 2 },
      { demand: demandOf(1, 8), move: [{ worker_id: 'b', ranks: 2 }] },
    );
    const pool = {
      workers: [workerOf('a', { schedulable: false }), workerOf('b', { slots: 4 })],
      running: [moving],
    };
    const decided = place(snapshotOf({ ...pool, waiting: [waitingOf('w', { demand: demandOf(3) })] }));
    t.match(decided, { starts: [], growth: [], requests: [] });
    const small = place(snapshotOf({ ...pool, waiting: [waitingOf('w', { demand: demandOf(2) })] }));
    t.match(small.starts, [{ job_id: 'w', placements: [{ worker_id: 'b', ranks: 2 }] }]);
    const urgent = waitingOf('w', { priority: 9, queued_at: NOW, demand: demandOf(4) });
    t.match(place(snapshotOf({ ...pool, waiting: [urgent] })).requests, []);
  },
);
