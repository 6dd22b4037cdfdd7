import t from 'tap';
import { jobOf, NOW, policyOf, World } from '../testing/world.js';
import { MAX_GAP_MS } from './memory.js';

const OWN = { id: 'own', machine: null, numerics: null, slots: 4, free: 4 };
const wants = (type: string, machines: number) => ({ kind: 'want', type, machines });

t.test('nobody wants anything: nothing is there and nothing is done', async (t) => {
  const world = new World(policyOf());
  t.same(world.tick().actions, []);
});

t.test('machines for what is queued are asked for at once, rounded up, and once', async (t) => {
  const world = new World(policyOf());
  world.jobs = [jobOf('a', { need: 2, want: 6 }), jobOf('b', { need: 1, want: 3 })];
  t.same(world.tick().actions, [wants('m', 3)], '9 ranks on machines of 4');
  t.same(world.ticks(5).actions, [], 'those that boot count');
  world.ticks(5);
  t.same(world.tick().report, {
    wanted_ranks: 9,
    running_ranks: 9,
    ranks: 12,
    refused: { too_large: 0, quota: 0, capacity: 0 },
    machines: { m: { up: 3, starting: 0, requested: 0, leaving: 0 } },
    idle_machines: 0,
    strikes: 0,
    anonymous_agents: 0,
    spent: world.state.spent.amount,
    budget_exhausted: false,
  });
});

t.test('down to zero when the work is done, after the time that machines may be idle', async (t) => {
  const world = new World(policyOf({ idle_seconds: 120 }));
  world.jobs = [jobOf('a', { need: 8 })];
  world.ticks(10);
  t.equal(world.machines.length, 2);
  world.jobs = [];
  world.place();
  world.ticks(12);
  t.equal(world.machines.length, 2, 'for two minutes they may get something to do');
  world.ticks(3);
  t.equal(world.machines.length, 0);
  t.same(world.wanted, { m: 0 });
  t.same(
    world.retired.map(({ reason, busy }) => ({ reason, busy })),
    [1, 2].map(() => ({ reason: 'idle', busy: false })),
  );
});

t.test('requests that nobody needs any more are taken back before a machine comes of them', async (t) => {
  const world = new World(policyOf());
  world.stock = { m: 1 };
  world.jobs = [jobOf('a', { need: 12 })];
  t.same(world.tick().actions, [wants('m', 3)]);
  world.tick();
  world.jobs = [jobOf('b', { need: 4 })];
  t.same(world.tick().actions, [wants('m', 1)], 'the one that is there stays');
});

t.test('a gang that does not fit brings up nothing, and does not keep others from it', async (t) => {
  const world = new World(policyOf({ max_ranks: 8 }));
  world.jobs = [jobOf('huge', { need: 12 }), jobOf('a', { need: 6 }), jobOf('b', { need: 4 })];
  const { actions, report } = world.tick();
  t.same(actions, [wants('m', 2)]);
  t.match(report, { wanted_ranks: 6, refused: { too_large: 1, capacity: 1, quota: 0 } });
});

t.test('whole multiples of ranks only', async (t) => {
  const world = new World(policyOf({ max_ranks: 7 }));
  world.jobs = [jobOf('a', { need: 2, want: 16, multiple: 2 })];
  t.equal(world.tick().report.wanted_ranks, 6);
});

t.test(
  'priority decides who has what there is room for; the minimum of all comes before more for one',
  async (t) => {
    const world = new World(policyOf({ max_ranks: 8 }));
    world.jobs = [
      jobOf('a', { need: 1, want: 8 }),
      jobOf('b', { need: 6, priority: 5 }),
      jobOf('c', { need: 1, want: 2 }),
    ];
    const { report } = world.tick();
    t.match(report, { wanted_ranks: 8, refused: { capacity: 0 } });
    world.jobs.unshift(jobOf('d', { need: 2, priority: 9 }));
    t.match(world.tick().report, { wanted_ranks: 8, refused: { capacity: 2 } });
  },
);

t.test('a project gets no machines beyond its quota', async (t) => {
  const world = new World(policyOf());
  world.quotas = { small: 4 };
  world.jobs = [
    jobOf('a', { need: 3, want: 8, project: 'small' }),
    jobOf('b', { need: 2, project: 'small' }),
    jobOf('c', { need: 4 }),
  ];
  t.match(world.tick().report, { wanted_ranks: 8, refused: { quota: 1 } });
});

t.test('work that needs an agent but no ranks brings up one', async (t) => {
  const world = new World(policyOf());
  world.errands = 3;
  t.same(world.tick().actions, [wants('m', 1)]);
});

t.test('a pool may keep some ranks', async (t) => {
  const world = new World(policyOf({ min_ranks: 5, idle_seconds: 0 }));
  world.ticks(20);
  t.equal(world.machines.length, 2);
});

t.test('the cheapest ranks first, and for the rest the cheapest machine that is enough', async (t) => {
  const types = [
    { name: 'one', slots: 1, max: 10, price_per_hour: 3 },
    { name: 'eight', slots: 8, max: 2, price_per_hour: 16 },
  ];
  const world = new World(policyOf({ types }));
  world.jobs = [jobOf('a', { need: 11 })];
  t.same(world.tick().actions, [wants('one', 3), wants('eight', 1)]);
  const other = new World(policyOf({ types }));
  other.jobs = [jobOf('a', { need: 15 })];
  t.same(other.tick().actions, [wants('eight', 2)], 'seven more of the small ones would cost more');
});

t.test('a machine whose agent never comes is replaced after two strikes, and then ever later', async (t) => {
  const world = new World(policyOf({ boot_grace_seconds: 60 }));
  world.boot_ms = null;
  world.jobs = [jobOf('a')];
  world.ticks(8);
  t.equal(world.tick().report.strikes, 1);
  t.equal(world.retired.length, 0);
  world.ticks(6);
  t.match(world.retired, [{ reason: 'never_registered' }]);
  t.equal(world.wanted.m, 1, 'and another one is on its way');
  world.ticks(15);
  t.equal(world.retired.length, 2);
  t.equal(world.wanted.m, 0, 'a type of which nothing comes waits');
  world.boot_ms = 10_000;
  world.ticks(15);
  t.equal(world.machines.length, 1);
  t.equal(world.tick().report.running_ranks, 1);
  t.equal(world.state.types.m?.failures, 0);
});

t.test('so is one whose agent was lost', async (t) => {
  const world = new World(policyOf({ boot_grace_seconds: 60 }));
  world.jobs = [jobOf('a')];
  world.ticks(10);
  const [machine] = world.machines;
  t.ok(machine?.worker);
  if (machine) machine.worker = null;
  world.boot_ms = null;
  world.ticks(15);
  t.match(world.retired, [{ machine: machine?.id, reason: 'agent_lost' }]);
  t.equal(world.wanted.m, 1);
});

t.test('while an agent does not say where it runs, nobody is ended for missing one', async (t) => {
  const world = new World(policyOf({ boot_grace_seconds: 60 }));
  world.boot_ms = null;
  world.jobs = [jobOf('a', { need: 8 })];
  const snapshot = world.snapshot.bind(world);
  const own = { ...OWN, busy: true, draining: false, retiring: false };
  world.snapshot = () => ({ ...snapshot(), workers: [own] });
  t.match(world.ticks(50).report, { anonymous_agents: 1, strikes: 8 });
  t.same(world.retired, []);
});

t.test('machines that leave do not count, and are replaced before they are gone', async (t) => {
  const world = new World(policyOf());
  world.jobs = [jobOf('a', { need: 4 })];
  world.ticks(10);
  const [machine] = world.machines;
  if (machine?.worker) machine.worker.draining = true;
  t.same(world.tick().actions, [wants('m', 2)]);
  world.drained = [machine?.id ?? ''];
  if (machine?.worker) machine.worker.busy = false;
  t.same(world.tick().actions, [{ kind: 'retire', machine: machine?.id, reason: 'drained' }]);
});

t.test('where a type can not be had another one takes over', async (t) => {
  const types = [
    { name: 'spot', slots: 4, max: 10, price_per_hour: 1 },
    { name: 'on-demand', slots: 4, max: 10, price_per_hour: 3 },
  ];
  const world = new World(policyOf({ types, launch_timeout_seconds: 60 }));
  world.stock = { spot: 1 };
  world.jobs = [jobOf('a', { need: 12 })];
  world.tick();
  t.same(world.wanted, { spot: 3 });
  world.ticks(9);
  t.same(world.wanted, { spot: 1, 'on-demand': 2 });
});

t.test(
  'a budget caps the day: what runs goes on, nothing is added, and at midnight it begins anew',
  async (t) => {
    const world = new World(policyOf({ budget_per_day: 10 }));
    world.jobs = [jobOf('a', { need: 4 }), jobOf('b', { need: 4 }), jobOf('c', { need: 4 })];
    t.match(
      world.tick(),
      { actions: [wants('m', 2)], report: { refused: { capacity: 1 } } },
      'two for an hour cost 8',
    );
    world.ticks(60 * 60, 1_000);
    t.equal(Math.round(world.tick().report.spent), 8);
    world.ticks(60, 60_000);
    t.match(world.tick().report, { budget_exhausted: true, running_ranks: 8, machines: { m: { up: 2 } } });
    t.equal(world.machines.length, 2, 'no machine that works is taken');
    world.now = Date.parse('2026-11-23T00:00:10Z');
    t.match(world.tick().report, { budget_exhausted: false, wanted_ranks: 8 });
    t.equal(
      Math.round(world.state.spent.amount * 1000),
      Math.round((8 * 10 * 1000) / 3600),
      'ten seconds of the new day',
    );
  },
);

t.test('after a time in which nothing was seen nobody counts as idle or missing for that time', async (t) => {
  const world = new World(policyOf({ idle_seconds: 60, boot_grace_seconds: 60 }));
  world.jobs = [jobOf('a', { need: 4 })];
  world.ticks(10);
  world.jobs = [];
  world.place();
  world.tick();
  world.now += MAX_GAP_MS + 100_000;
  t.same(world.tick().actions, []);
  world.ticks(6);
  t.equal(world.machines.length, 1, 'its agent has the time of a lease to say that it works');
  world.ticks(4);
  t.equal(world.machines.length, 0, 'but from then on');
  t.ok(world.now > NOW);
});

t.test('a machine that was told to go by whoever is gone now goes', async (t) => {
  const world = new World(policyOf());
  world.jobs = [jobOf('a', { need: 4 })];
  world.ticks(10);
  world.jobs = [];
  const [machine] = world.machines;
  if (machine?.worker) Object.assign(machine.worker, { draining: true, retiring: true, busy: true });
  t.same(world.tick(0).actions, [], 'once it is idle');
  world.place();
  if (machine?.worker) machine.worker.busy = false;
  t.same(world.tick().actions, [{ kind: 'retire', machine: machine?.id, reason: 'idle' }]);
});

t.test('an agent may be heard of before its machine is listed', async (t) => {
  const world = new World(policyOf());
  world.jobs = [jobOf('a', { need: 4 })];
  world.tick();
  const own = { ...OWN, id: 'w', machine: 'm-1', busy: false, draining: false, retiring: false };
  const snapshot = world.snapshot.bind(world);
  world.snapshot = () => ({ ...snapshot(), machines: [], workers: [own] });
  t.match(world.ticks(10), { actions: [], report: { ranks: 4 } }, 'what was asked for is not taken back');
  t.same(world.ticks(5).actions, [], 'nor later');
  t.same(world.wanted, { m: 0 }, 'but a machine that is never listed is none of those that were asked for');
});

t.test('agents on machines that nobody scales count for what they have', async (t) => {
  const world = new World(policyOf());
  world.jobs = [jobOf('a', { need: 6 })];
  const own = { ...OWN, busy: false, draining: false, retiring: false };
  const snapshot = world.snapshot.bind(world);
  world.snapshot = () => ({ ...snapshot(), workers: [...snapshot().workers, own] });
  t.same(world.tick().actions, [wants('m', 1)]);
});
