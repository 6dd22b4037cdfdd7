import t from 'tap';
import { place } from './place.js';
import { demandOf, MINUTE, NOW, runningOf, snapshotOf, waitingOf, workerOf } from './testing/pool.js';
import type { Snapshot } from './types.js';

const GIB = 2 ** 30;

/** Returns the placements of the starting jobs as text. */
function startsOf(snapshot: Partial<Snapshot>): Record<string, string> {
  const { starts } = place(snapshotOf(snapshot));
  return Object.fromEntries(starts.map(({ job_id, placements }) => [job_id, textOf(placements)]));
}

function textOf(placements: readonly { worker_id: string; ranks: number }[]): string {
  return placements.map(({ worker_id, ranks }) => `${worker_id}:${ranks}`).join(' ');
}

const ago = (minutes: number) => NOW - minutes * MINUTE;

t.test('a hundred jobs that no worker can run do not block others', async (t) => {
  const impossible = Array.from({ length: 150 }, (_, index) =>
    waitingOf(`large-${index}`, { queued_at: ago(60), demand: demandOf(16) }),
  );
  const small = waitingOf('small');
  const { starts, waiting } = place(
    snapshotOf({ workers: [workerOf('w')], waiting: [...impossible, small] }),
  );
  t.strictSame(
    starts.map(({ job_id }) => job_id),
    ['small'],
  );
  t.equal(waiting.get('large-149'), 'workers');
});

t.test('jobs waiting for slots do not block jobs that fit elsewhere, however many they are', async (t) => {
  const workers = [workerOf('w0', { slots: 4 }), workerOf('w1', { group: 'b', slots: 2 })];
  const running = [runningOf('r', { w0: 4 })];
  const queue = Array.from({ length: 500 }, (_, index) =>
    waitingOf(`gang-${index}`, { queued_at: ago(9), demand: demandOf(4) }),
  );
  t.strictSame(startsOf({ workers, running, waiting: [...queue, waitingOf('small')] }), { small: 'w1:1' });
});

t.test(
  'smaller jobs may pass a job that does not fit for a minute, then slots are held for it',
  async (t) => {
    const workers = [workerOf('w', { slots: 4 })];
    const running = [runningOf('r', { w: 2 })];
    const gang = (queuedAt: number) => waitingOf('gang', { queued_at: queuedAt, demand: demandOf(4) });
    const small = waitingOf('small');
    t.strictSame(startsOf({ workers, running, waiting: [gang(NOW - 59_000), small] }), { small: 'w:1' });
    const { starts, waiting } = place(snapshotOf({ workers, running, waiting: [gang(ago(1)), small] }));
    t.strictSame(starts, []);
    t.strictSame(
      [...waiting],
      [
        ['gang', 'slots'],
        ['small', 'order'],
      ],
    );
  },
);

t.test('a job gets free slots up to its maximum, in whole sets', async (t) => {
  const workers = [workerOf('w0', { slots: 4 }), workerOf('w1', { slots: 3 })];
  const demand = demandOf(2, 8, { multiple: 2 });
  t.strictSame(startsOf({ workers, waiting: [waitingOf('a', { demand })] }), { a: 'w0:4 w1:2' });
  t.strictSame(startsOf({ workers, waiting: [waitingOf('a', { demand: demandOf(8) })] }), {});
});

t.test('small jobs fill the fullest machine, large ones take as few machines as possible', async (t) => {
  const workers = [workerOf('w0'), workerOf('w1'), workerOf('w2')];
  const running = [runningOf('r', { w1: 5 })];
  const one = (demand: number) =>
    startsOf({ workers, running, waiting: [waitingOf('a', { demand: demandOf(demand) })] });
  t.strictSame(one(2), { a: 'w1:2' });
  t.strictSame(one(4), { a: 'w0:4' });
  t.strictSame(one(11), { a: 'w0:8 w1:3' });
});

t.test('ranks of a job lie in as few domains of the network as possible', async (t) => {
  const at = (id: string, ...topology: string[]) => workerOf(id, { slots: 1, topology });
  const workers = [at('w0', 'a', 'n0'), at('w1', 'b', 'n1'), at('w2', 'a', 'n2'), at('w3', 'b', 'n1')];
  const start = (ranks: number, running = [runningOf('r', {})]) =>
    startsOf({ workers, running, waiting: [waitingOf('job', { demand: demandOf(ranks) })] });
  t.strictSame(start(2), { job: 'w1:1 w3:1' }, 'on one node');
  t.strictSame(start(2, [runningOf('r', { w1: 1 })]), { job: 'w0:1 w2:1' }, 'in one zone');
  t.strictSame(start(3), { job: 'w0:1 w2:1 w1:1' }, 'ranks of a zone are neighbours');
  const { growth } = place(
    snapshotOf({ workers, running: [runningOf('r', { w2: 1 }, { demand: demandOf(1, 3) })] }),
  );
  t.strictSame(
    growth.map(({ placements }) => textOf(placements)),
    ['w2:1 w0:1 w1:1'],
    'a job grows in its own zone first',
  );
});

t.test('ranks of a job lie in one group', async (t) => {
  const workers = [workerOf('w0', { slots: 4 }), workerOf('w1', { group: 'b', slots: 5 })];
  const rangesOfDemand = (need: number, want: number) =>
    startsOf({ workers, waiting: [waitingOf('a', { demand: demandOf(need, want) })] });
  t.strictSame(rangesOfDemand(6, 9), {});
  t.strictSame(rangesOfDemand(2, 9), { a: 'w1:5' }, 'in the group with the most ranks');
  t.strictSame(rangesOfDemand(2, 3), { a: 'w0:3' }, 'among equals in the group with fewer free slots');
});

t.test('GPUs have enough memory for the number of ranks', async (t) => {
  const memory = [
    { ranks: 1, bytes: 60 * GIB },
    { ranks: 4, bytes: 15 * GIB },
  ];
  const demand = demandOf(1, 4, { memory });
  const small = workerOf('small', { slots: 3, gpu_bytes: 16 * GIB });
  const large = workerOf('large', { slots: 2, gpu_bytes: 80 * GIB });
  const startsOn = (...workers: (typeof small)[]) =>
    startsOf({ workers, waiting: [waitingOf('a', { demand })] });
  t.strictSame(startsOn(small), {}, 'three ranks need more memory than it has');
  t.strictSame(startsOn(large), { a: 'large:2' });
  t.strictSame(startsOn(small, large), { a: 'small:3 large:1' });
  t.strictSame(startsOn({ ...small, slots: 4 }, large), { a: 'small:4' }, 'the large GPUs stay free');
});

t.test('order by points, usage of the project, and time', async (t) => {
  const workers = [workerOf('w', { slots: 2 })];
  const first = (...jobs: ReturnType<typeof waitingOf>[]) =>
    Object.keys(startsOf({ workers, running: [runningOf('r', { w: 1 })], waiting: jobs }));
  const other = { project: 'q' };
  t.strictSame(first(waitingOf('a'), waitingOf('b', { priority: 1 })), ['b']);
  t.strictSame(
    first(waitingOf('a', { queued_at: ago(2) }), waitingOf('b', { priority: 1 })),
    ['a'],
    'ageing',
  );
  t.strictSame(
    first(waitingOf('a', { queued_at: NOW - 9000 }), waitingOf('b', other)),
    ['b'],
    'its project uses less',
  );
  t.strictSame(first(waitingOf('a'), waitingOf('b', { queued_at: NOW - 1 })), ['b'], 'it was queued first');
});

t.test('waiting counts from the last start of the project in the group', async (t) => {
  const workers = [workerOf('w', { slots: 1 })];
  const waiting = [
    waitingOf('a', { queued_at: ago(30) }),
    waitingOf('b', { queued_at: ago(5), project: 'q' }),
  ];
  t.strictSame(Object.keys(startsOf({ workers, waiting })), ['a']);
  const servedAt = new Map([['p', new Map([['a', ago(1)]])]]);
  t.strictSame(Object.keys(startsOf({ workers, waiting, served_at: servedAt })), ['b']);
  const elsewhere = new Map([['p', new Map([['other', ago(1)]])]]);
  t.strictSame(Object.keys(startsOf({ workers, waiting, served_at: elsewhere })), ['a']);
  const two = {
    workers: [...workers, workerOf('v', { group: 'b', slots: 1 })],
    running: [runningOf('r', { v: 1 })],
  };
  t.strictSame(
    Object.keys(startsOf({ ...two, waiting, served_at: servedAt })),
    ['b'],
    'one of its groups counts',
  );
});

t.test('running jobs grow when no job waits for their group', async (t) => {
  const workers = [workerOf('w0', { slots: 4 }), workerOf('w1', { slots: 2 })];
  const job = runningOf('r', { w0: 2 }, { demand: demandOf(1, 5) });
  const growthOf = (fields: Partial<Snapshot>) =>
    place(snapshotOf({ workers, running: [job], ...fields })).growth.map(({ placements }) =>
      textOf(placements),
    );
  t.strictSame(growthOf({}), ['w0:4 w1:1']);
  t.strictSame(growthOf({ running: [{ ...job, may_change: false }] }), []);
  t.strictSame(growthOf({ waiting: [waitingOf('gang', { demand: demandOf(6) })] }), []);
  t.strictSame(
    growthOf({ waiting: [waitingOf('huge', { demand: demandOf(7) })] }),
    ['w0:4 w1:1'],
    'the waiting job fits nowhere',
  );
  const draining = [workerOf('w0', { slots: 4, schedulable: false }), workerOf('w1', { slots: 2 })];
  t.strictSame(growthOf({ workers: draining }), ['w0:2 w1:2'], 'a draining worker gets nothing');
});

t.test(
  'the first waiting job requests preemption: shrinking first, release only of lower priority',
  async (t) => {
    const workers = [workerOf('w')];
    const wide = runningOf('wide', { w: 5 }, { demand: demandOf(2, 5) });
    const fixed = runningOf('fixed', { w: 3 }, { granted_priority: 1 });
    const requestsOf = (need: number, fields: object, running = [wide, fixed]) =>
      place(
        snapshotOf({ workers, running, waiting: [waitingOf('next', { demand: demandOf(need), ...fields })] }),
      ).requests;
    const request = (ranks: number) => ({ ranks, for: 'next' });
    t.strictSame(
      requestsOf(2, { queued_at: ago(1) }),
      [{ job_id: 'wide', request: request(3) }],
      'no more than needed',
    );
    t.strictSame(requestsOf(2, {}), [], 'it has no more points');
    t.strictSame(requestsOf(4, { queued_at: ago(5) }), [], 'not enough slots, and the priority is equal');
    t.strictSame(requestsOf(4, { priority: 3 }), [{ job_id: 'wide', request: request(0) }]);
    t.strictSame(requestsOf(8, { priority: 3 }), [
      { job_id: 'wide', request: request(0) },
      { job_id: 'fixed', request: request(0) },
    ]);
    const asked = { ...wide, request: request(3) };
    t.strictSame(requestsOf(2, { queued_at: ago(1) }, [asked, fixed]), [], 'a job has at most one request');
  },
);

t.test(
  'preempted slots are held for the requesting job; a request ends with the wait of that job',
  async (t) => {
    const workers = [workerOf('w', { slots: 4 })];
    const running = [
      runningOf('r', { w: 3 }, { request: { ranks: 2, for: 'next' }, demand: demandOf(2, 3) }),
    ];
    const next = waitingOf('next', { demand: demandOf(2), priority: 1 });
    const small = waitingOf('small');
    t.strictSame(startsOf({ workers, running, waiting: [next, small] }), {});
    const { starts, withdrawn } = place(snapshotOf({ workers, running, waiting: [small] }));
    t.strictSame(withdrawn, ['r']);
    t.equal(starts.length, 1);
  },
);
