import t from 'tap';
import { jobOf, NOW, policyOf, World } from '../testing/world.js';
import { MAX_GAP_MS } from './observe.js';

const OWN = { id: 'own', machine: null, numerics: null, slots: 4, free: 4, save_seconds: null };
const setSize = (type: string, machines: number) => ({ kind: 'set_size', type, machines });

t.test('does nothing without demand and machines', async (t) => {
  const world = new World(policyOf());
  t.same(world.tick().actions, []);
});

t.test('requests machines for queued jobs at once, rounded up, and once', async (t) => {
  const world = new World(policyOf());
  world.jobs = [jobOf('a', { need: 2, want: 6 }), jobOf('b', { need: 1, want: 3 })];
  t.same(world.tick().actions, [setSize('m', 3)], '9 ranks on machines of 4');
  t.same(world.ticks(5).actions, [], 'booting machines count');
  world.ticks(5);
  t.same(world.tick().report, {
    desired_ranks: 9,
    running_ranks: 9,
    provisioned_ranks: 12,
    unschedulable: { too_large: 0, quota: 0, capacity: 0, budget: 0, gang: 0, launch_failed: 0 },
    machines: { m: { running: 3, starting: 0, requested: 0, terminating: 0 } },
    pods: [],
    problems: [],
    idle_machines: 0,
    missing_agent_timeouts: 0,
    strikes: 0,
    unidentified_agents: 0,
    daily_cost: world.state.spent.amount,
    budget_exhausted: false,
  });
});

t.test('scales to zero after the idle timeout when the work is done', async (t) => {
  const world = new World(policyOf({ idle_seconds: 120 }));
  world.jobs = [jobOf('a', { need: 8 })];
  world.ticks(10);
  t.equal(world.machines.length, 2);
  world.jobs = [];
  world.place();
  world.ticks(12);
  t.equal(world.machines.length, 2, 'idle machines stay for two minutes');
  world.ticks(3);
  t.equal(world.machines.length, 0);
  t.same(world.wanted, { m: 0 });
  t.same(
    world.retired.map(({ reason, busy }) => ({ reason, busy })),
    [1, 2].map(() => ({ reason: 'idle', busy: false })),
  );
});

t.test('superfluous requests are cancelled before machines launch', async (t) => {
  const world = new World(policyOf());
  world.stock = { m: 1 };
  world.jobs = [jobOf('a', { need: 12 })];
  t.same(world.tick().actions, [setSize('m', 3)]);
  world.tick();
  world.jobs = [jobOf('b', { need: 4 })];
  t.same(world.tick().actions, [setSize('m', 1)], 'the present machine stays');
});

t.test('capacity goes by priority; the minimum of all jobs comes before growth of one', async (t) => {
  const world = new World(policyOf({ max_ranks: 8 }));
  world.jobs = [
    jobOf('a', { need: 1, want: 8 }),
    jobOf('b', { need: 6, priority: 5 }),
    jobOf('c', { need: 1, want: 2 }),
  ];
  const { report } = world.tick();
  t.match(report, { desired_ranks: 8, unschedulable: { capacity: 0 } });
  world.jobs.unshift(jobOf('d', { need: 2, priority: 9 }));
  t.match(world.tick().report, { desired_ranks: 8, unschedulable: { capacity: 2 } });
});

t.test('a project gets no machines beyond its quota', async (t) => {
  const world = new World(policyOf());
  world.quotas = { small: 4 };
  world.jobs = [
    jobOf('a', { need: 3, want: 8, project: 'small' }),
    jobOf('b', { need: 2, project: 'small' }),
    jobOf('c', { need: 4 }),
  ];
  t.match(world.tick().report, { desired_ranks: 8, unschedulable: { quota: 1 } });
});

t.test('background tasks keep one machine', async (t) => {
  const world = new World(policyOf());
  world.backgroundTasks = 3;
  t.same(world.tick().actions, [setSize('m', 1)]);
});

t.test('keeps the minimum of ranks', async (t) => {
  const world = new World(policyOf({ min_ranks: 5, idle_seconds: 0 }));
  world.ticks(20);
  t.equal(world.machines.length, 2);
});

t.test(
  'chooses the cheapest ranks first, and for the remainder the cheapest machine that suffices',
  async (t) => {
    const types = [
      { name: 'one', slots: 1, max: 10, price_per_hour: 3 },
      { name: 'eight', slots: 8, max: 2, price_per_hour: 16 },
    ];
    const world = new World(policyOf({ types }));
    world.jobs = [jobOf('a', { need: 11 })];
    t.same(world.tick().actions, [setSize('one', 3), setSize('eight', 1)]);
    const other = new World(policyOf({ types }));
    other.jobs = [jobOf('a', { need: 15 })];
    t.same(other.tick().actions, [setSize('eight', 2)], 'seven more of the small ones would cost more');
  },
);

t.test(
  'a machine whose agent never registers is replaced after two timeouts, then with backoff',
  async (t) => {
    const world = new World(policyOf({ boot_grace_seconds: 60 }));
    world.bootMs = null;
    world.jobs = [jobOf('a')];
    world.ticks(8);
    t.equal(world.tick().report.missing_agent_timeouts, 1);
    t.equal(world.retired.length, 0);
    world.ticks(6);
    t.match(world.retired, [{ reason: 'never_registered' }]);
    t.equal(world.wanted.m, 1, 'and a replacement is requested');
    world.ticks(15);
    t.equal(world.retired.length, 2);
    t.equal(world.wanted.m, 0, 'a type that fails repeatedly is paused');
    world.bootMs = 10_000;
    world.ticks(15);
    t.equal(world.machines.length, 1);
    t.equal(world.tick().report.running_ranks, 1);
    t.equal(world.state.types.m?.failures, 0);
  },
);

t.test('a machine whose agent was lost is replaced', async (t) => {
  const world = new World(policyOf({ boot_grace_seconds: 60 }));
  world.jobs = [jobOf('a')];
  world.ticks(10);
  const [machine] = world.machines;
  t.ok(machine?.worker);
  if (machine) machine.worker = null;
  world.bootMs = null;
  world.ticks(15);
  t.match(world.retired, [{ machine: machine?.id, reason: 'agent_lost' }]);
  t.equal(world.wanted.m, 1);
});

t.test('no machine is retired for a missing agent while an agent does not report its machine', async (t) => {
  const world = new World(policyOf({ boot_grace_seconds: 60 }));
  world.bootMs = null;
  world.jobs = [jobOf('a', { need: 8 })];
  const snapshot = world.snapshot.bind(world);
  const own = { ...OWN, busy: true, draining: false, retiring: false };
  world.snapshot = () => ({ ...snapshot(), workers: [own] });
  t.match(world.ticks(50).report, { unidentified_agents: 1, missing_agent_timeouts: 8 });
  t.same(world.retired, []);
});

t.test('leaving machines do not count, and are replaced before they are gone', async (t) => {
  const world = new World(policyOf());
  world.jobs = [jobOf('a', { need: 4 })];
  world.ticks(10);
  const [machine] = world.machines;
  if (machine?.worker) machine.worker.draining = true;
  t.same(world.tick().actions, [setSize('m', 2)]);
  world.drained = [machine?.id ?? ''];
  if (machine?.worker) machine.worker.busy = false;
  t.same(world.tick().actions, [{ kind: 'retire', machine: machine?.id, reason: 'drained' }]);
});

t.test('another type takes over when one is not available', async (t) => {
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
  'the budget caps the day: running jobs continue, nothing is added, and midnight resets it',
  async (t) => {
    const world = new World(policyOf({ budget_per_day: 10, on_budget: 'finish' }));
    world.jobs = [jobOf('a', { need: 4 }), jobOf('b', { need: 4 }), jobOf('c', { need: 4 })];
    t.match(
      world.tick(),
      { actions: [setSize('m', 2)], report: { unschedulable: { capacity: 0, budget: 1 } } },
      'two for an hour cost 8',
    );
    world.ticks(60 * 60, 1_000);
    t.equal(Math.round(world.tick().report.daily_cost), 8);
    world.ticks(60, 60_000);
    t.match(world.tick().report, {
      budget_exhausted: true,
      running_ranks: 8,
      machines: { m: { running: 2 } },
    });
    t.equal(world.machines.length, 2, 'no busy machine is retired');
    world.now = Date.parse('2026-11-23T00:00:10Z');
    t.match(world.tick().report, { budget_exhausted: false, desired_ranks: 8 });
    t.equal(
      Math.round(world.state.spent.amount * 1000),
      Math.round((8 * 10 * 1000) / 3600),
      'ten seconds of the new day',
    );
  },
);

t.test(
  'a spent budget ends all machines that cost something, and their jobs go on the next day',
  async (t) => {
    const free = { name: 'own', slots: 4, max: 1, price_per_hour: 0 };
    const paid = { name: 'm', slots: 4, max: 10, price_per_hour: 4 };
    const world = new World(policyOf({ budget_per_day: 10, types: [free, paid] }));
    world.jobs = ['a', 'b', 'c'].map((id) => jobOf(id, { need: 4 }));
    world.ticks(75, 60_000);
    t.same(world.machines.map(({ type }) => type).sort(), ['m', 'm', 'own']);
    const stopped = world.tick(60_000);
    t.same(world.retired, [
      { machine: 'm-2', reason: 'budget', busy: true },
      { machine: 'm-3', reason: 'budget', busy: true },
    ]);
    t.match(stopped.report, { budget_exhausted: true });
    const after = world.tick();
    t.match(after.report, { running_ranks: 4, unschedulable: { budget: 2 } });
    t.equal(after.explain.length, 2);
    t.same(world.ticks(100, 60_000).explain, [], 'each job is told once');
    t.equal(world.machines.length, 1, 'the machine that costs nothing stays');
    world.now = Date.parse('2026-11-23T00:00:10Z');
    world.ticks(12);
    t.match(world.tick().report, { running_ranks: 12, unschedulable: { budget: 0 } });
  },
);

t.test('time without observations does not count as idle or missing', async (t) => {
  const world = new World(policyOf({ idle_seconds: 60, boot_grace_seconds: 60 }));
  world.jobs = [jobOf('a', { need: 4 })];
  world.ticks(10);
  world.jobs = [];
  world.place();
  world.tick();
  world.now += MAX_GAP_MS + 100_000;
  t.same(world.tick().actions, []);
  world.ticks(6);
  t.equal(world.machines.length, 1, 'its agent has one lease to report work');
  world.ticks(4);
  t.equal(world.machines.length, 0, 'afterwards idle time counts');
  t.ok(world.now > NOW);
});

t.test('a machine that an earlier leader chose to retire is retired', async (t) => {
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

t.test('an agent may register before its machine is listed', async (t) => {
  const world = new World(policyOf());
  world.jobs = [jobOf('a', { need: 4 })];
  world.tick();
  const own = { ...OWN, id: 'w', machine: 'm-1', busy: false, draining: false, retiring: false };
  const snapshot = world.snapshot.bind(world);
  world.snapshot = () => ({ ...snapshot(), machines: [], workers: [own] });
  t.match(world.ticks(10), { actions: [], report: { provisioned_ranks: 4 } }, 'the request is not cancelled');
  t.same(world.ticks(5).actions, [], 'nor later');
  t.same(world.wanted, { m: 0 }, 'but a machine that is never listed does not count as requested');
});

t.test('agents on unmanaged machines count with their slots', async (t) => {
  const world = new World(policyOf());
  world.jobs = [jobOf('a', { need: 6 })];
  const own = { ...OWN, busy: false, draining: false, retiring: false };
  const snapshot = world.snapshot.bind(world);
  world.snapshot = () => ({ ...snapshot(), workers: [...snapshot().workers, own] });
  t.same(world.tick().actions, [setSize('m', 1)]);
});
