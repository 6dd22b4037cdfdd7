/** All ranks of one job lie on machines with equal numerics. */
import t from 'tap';
import { jobOf, policyOf, World } from '../testing/world.js';
import { type Growth, ranksForGroups } from './groups.js';
import type { JobDemand, WorkerView } from './types.js';

const TWO_KINDS = {
  types: [
    { name: 'a', slots: 1, max: 5, price_per_hour: 2 },
    { name: 'b', slots: 1, max: 1, price_per_hour: 1 },
  ],
  idle_seconds: 60,
};

t.test('two machines of different numerics are not enough for a job of two ranks', async (t) => {
  const world = new World(policyOf(TWO_KINDS));
  world.numerics = { a: 'cuda-a/1', b: 'cuda-b/1' };
  world.jobs = [jobOf('x', { need: 2 })];
  t.same(
    world.tick().actions,
    [
      { kind: 'set_size', type: 'a', machines: 1 },
      { kind: 'set_size', type: 'b', machines: 1 },
    ],
    'their numerics are not known yet',
  );
  world.ticks(30);
  t.equal(world.jobs[0]?.held, 2);
  t.same(world.wanted, { a: 2, b: 0 }, 'and the useless machine is retired');
  t.same(world.ticks(10).actions, [], 'the pool is stable');
  world.jobs = [];
  world.place();
  world.ticks(20);
  t.equal(world.machines.length, 0);
});

t.test('machines that are requested already count for the group that they will belong to', async (t) => {
  const [a, b] = TWO_KINDS.types;
  // No machine of type a can be added beyond the two that the job needs.
  const world = new World(policyOf({ ...TWO_KINDS, types: [{ ...a, max: 2 }, b] as typeof TWO_KINDS.types }));
  world.numerics = { a: 'cuda-a/1', b: 'cuda-b/1' };
  world.stock = { a: 1, b: 1 };
  world.jobs = [jobOf('x', { need: 2 })];
  world.ticks(10);
  t.same(world.wanted, { a: 2, b: 1 });
  t.same(world.ticks(3).actions, [], 'the second one is awaited');
  world.stock = { a: 2, b: 1 };
  world.ticks(30);
  t.equal(world.jobs[0]?.held, 2);
  t.same(world.wanted, { a: 2, b: 0 });
});

t.test('a group grows beside running jobs, but only where it can become large enough', async (t) => {
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
  t.equal(small.machines.length, 2, 'a third machine is not allowed');
});

t.test('machines that cannot help a waiting job are not launched and retired in a loop', async (t) => {
  const types = [
    { name: 'a', slots: 8, max: 9, price_per_hour: 0 },
    { name: 'b', slots: 1, max: 3, price_per_hour: 0 },
  ];
  const world = new World(policyOf({ types, idle_seconds: 71, gang_seconds: 1e6 }));
  world.numerics = { a: 'cuda-a/1', b: 'cuda-b/1' };
  // Type a has 72 ranks, and two jobs hold 55 of them. The third job needs 18 in one group: a has 17, b at most 3.
  world.jobs = [
    jobOf('x', { need: 21, want: 25 }),
    jobOf('y', { need: 21, want: 30 }),
    jobOf('z', { need: 18 }),
  ];
  world.ticks(120);
  t.same(
    world.jobs.map(({ held }) => held),
    [25, 30, 0],
  );
  t.same(world.ticks(200).actions, []);
  const launched = world.machines.map(({ id }) => id);
  world.ticks(200);
  t.same(
    world.machines.map(({ id }) => id),
    launched,
  );
});

t.test('a starting machine counts for its expected group', async (t) => {
  const types = [
    { name: 'a', slots: 1, max: 1, price_per_hour: 0 },
    { name: 'b', slots: 2, max: 9, price_per_hour: 1 },
  ];
  const world = new World(policyOf({ types, idle_seconds: 0 }));
  world.numerics = { a: 'cuda-a/1', b: 'cuda-b/1' };
  world.jobs = [jobOf('x', { need: 17 })];
  world.bootMs = 10_000;
  world.ticks(120);
  t.equal(world.jobs[0]?.held, 17);
  t.same(world.ticks(200).actions, []);
});

/** Returns ranksForGroups for workers with the given free ranks. */
function ranks(
  jobs: JobDemand[],
  free: [group: string | null, ranks: number][],
  most = 100,
  growth: Growth[] = [{ ranks: 100, numerics: undefined }],
): number {
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
      save_seconds: null,
    }),
  );
  return ranksForGroups(jobs, workers, growth, most);
}

t.test(
  'the largest group grows, and free ranks of groups that are too small count for nothing',
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
      'in any order',
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

t.test('returns 0 with equal numerics or without workers', async (t) => {
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

t.test('waiting jobs come on top of running ones', async (t) => {
  const free: [string, number][] = [
    ['a', 3],
    ['b', 1],
  ];
  const runs = jobOf('r', { need: 2, held: 5 });
  t.equal(ranks([runs], free), 0);
  t.equal(ranks([runs, jobOf('x', { need: 4 })], free), 5 + 4 + 1);
  const several = [jobOf('x', { need: 2 }), jobOf('y', { need: 6 }), jobOf('z', { need: 4 })];
  t.equal(ranks(several, free), 7, 'the job that lacks most');
  t.equal(ranks(several, free, 7), 7);
  t.equal(ranks(several, free, 6), 5, 'of those within the maximum');
  t.equal(ranks(several, free, 2), 0);
});

t.test('only a group that can become large enough grows', async (t) => {
  const jobs = [jobOf('x', { need: 6 })];
  const free: [string, number][] = [
    ['a', 5],
    ['b', 2],
  ];
  const more = (numerics: Growth['numerics'], ranks: number): Growth[] => [{ numerics, ranks }];
  t.equal(ranks(jobs, free, 100, more('a', 1)), 6 + 2, 'the largest');
  t.equal(ranks(jobs, free, 100, more('b', 4)), 6 + 5, 'the other one, if only that can grow');
  t.equal(ranks(jobs, free, 100, more('b', 3)), 0, 'none');
  t.equal(ranks(jobs, free, 100, more('c', 6)), 6 + 5 + 2, 'a group without workers at present');
  t.equal(ranks(jobs, free, 100, more('c', 5)), 0);
  t.equal(ranks(jobs, free, 100, more(undefined, 1)), 6 + 2, 'the group of the machine is not known');
  t.equal(ranks(jobs, free, 100, [...more('a', 1), ...more('b', 4)]), 6 + 2, 'the larger of two');
  t.equal(ranks(jobs, free, 100, []), 0, 'no machine is available');
});
