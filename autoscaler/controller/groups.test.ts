/** Ranks of one job lie on machines that compute the same bits. */
import t from 'tap';
import { jobOf, policyOf, World } from '../testing/world.js';
import { ranksForGroups } from './groups.js';
import type { JobDemand, WorkerView } from './types.js';

const TWO_KINDS = {
  types: [
    { name: 'a', slots: 1, max: 5, price_per_hour: 2 },
    { name: 'b', slots: 1, max: 1, price_per_hour: 1 },
  ],
  idle_seconds: 60,
};

t.test('two machines that compute other bits are not enough for a job of two ranks', async (t) => {
  const world = new World(policyOf(TWO_KINDS));
  world.numerics = { a: 'cuda-a/1', b: 'cuda-b/1' };
  world.jobs = [jobOf('x', { need: 2 })];
  t.same(
    world.tick().actions,
    [
      { kind: 'want', type: 'a', machines: 1 },
      { kind: 'want', type: 'b', machines: 1 },
    ],
    'nobody knows yet what they compute',
  );
  world.ticks(30);
  t.equal(world.jobs[0]?.held, 2);
  t.same(world.wanted, { a: 2, b: 0 }, 'and what is of no use goes');
  t.same(world.ticks(10).actions, [], 'it rests');
  world.jobs = [];
  world.place();
  world.ticks(20);
  t.equal(world.machines.length, 0);
});

t.test(
  'a group is filled up beside jobs that run, and not where it can not become large enough',
  async (t) => {
    const world = new World(policyOf(TWO_KINDS));
    world.numerics = { a: 'cuda-a/1', b: 'cuda-b/1' };
    world.jobs = [jobOf('x', { need: 2 }), jobOf('y', { need: 1 })];
    world.ticks(30);
    t.same(
      world.jobs.map(({ held }) => held),
      [2, 1],
    );
    world.jobs.push(jobOf('z', { need: 2 }));
    world.ticks(30);
    t.equal(world.jobs[2]?.held, 2);
    const small = new World(policyOf({ ...TWO_KINDS, max_ranks: 2 }));
    small.numerics = world.numerics;
    small.jobs = [jobOf('x', { need: 2 })];
    small.ticks(30);
    t.equal(small.jobs[0]?.held, 0);
    t.equal(small.machines.length, 2, 'there may be no third one');
  },
);

/** Ranks for jobs, with so many free ranks on each worker of a group. */
function ranks(jobs: JobDemand[], free: [group: string | null, ranks: number][], most = 100): number {
  const workers = free.map(
    ([numerics, free], i): WorkerView => ({
      id: `w-${i}`,
      machine: null,
      numerics,
      slots: free,
      free,
      busy: false,
      draining: false,
      retiring: false,
    }),
  );
  return ranksForGroups(jobs, workers, most);
}

t.test(
  'the largest group is filled up, and what is free in those that are too small counts for nothing',
  async (t) => {
    const two = [jobOf('x', { need: 4 })];
    t.equal(
      ranks(two, [
        ['a', 1],
        ['b', 3],
      ]),
      5,
    );
    t.equal(
      ranks(two, [
        ['b', 3],
        ['a', 1],
      ]),
      5,
      'whatever their order',
    );
    t.equal(
      ranks(two, [
        ['a', 1],
        ['b', 2],
        ['a', 2],
        [null, 1],
      ]),
      4 + 2 + 1,
      'workers of one group count together',
    );
    t.equal(
      ranks(two, [
        ['a', 1],
        ['b', 4],
        ['c', 4],
      ]),
      4 + 1,
      'a group that is large enough is of use',
    );
    t.equal(
      ranks(two, [
        ['a', 9],
        ['b', 4],
      ]),
      0,
    );
  },
);

t.test('where all workers compute the same bits, or there are none, nothing is lacking', async (t) => {
  t.equal(
    ranks(
      [jobOf('x', { need: 4 })],
      [
        ['a', 1],
        ['a', 2],
      ],
    ),
    0,
  );
  t.equal(ranks([jobOf('x', { need: 4 })], []), 0);
  t.equal(
    ranks(
      [],
      [
        ['a', 1],
        ['b', 2],
      ],
    ),
    0,
  );
});

t.test('jobs that run have theirs, and those that wait come on top', async (t) => {
  const free: [string, number][] = [
    ['a', 3],
    ['b', 1],
  ];
  const runs = jobOf('r', { need: 2, held: 5 });
  t.equal(ranks([runs], free), 0);
  t.equal(ranks([runs, jobOf('x', { need: 4 })], free), 5 + 4 + 1);
  const several = [jobOf('x', { need: 2 }), jobOf('y', { need: 6 }), jobOf('z', { need: 4 })];
  t.equal(ranks(several, free), 7, 'the one that lacks most');
  t.equal(ranks(several, free, 7), 7);
  t.equal(ranks(several, free, 6), 5, 'of those that there may be ranks for');
  t.equal(ranks(several, free, 2), 0);
});
