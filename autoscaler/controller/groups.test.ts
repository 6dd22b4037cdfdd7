/** Ranks of one job lie on machines that compute the same bits. */
import t from 'tap';
import { jobOf, policyOf, World } from '../testing/world.js';

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
