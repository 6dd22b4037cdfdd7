import t from 'tap';
import { jobOf, policyOf, World } from '../testing/world.js';

const setSize = (type: string, machines: number) => ({ kind: 'set_size', type, machines });

t.test('a gang that does not fit requests nothing and does not block others', async (t) => {
  const world = new World(policyOf({ max_ranks: 8 }));
  world.jobs = [jobOf('huge', { need: 12 }), jobOf('a', { need: 6 }), jobOf('b', { need: 4 })];
  const { actions, report } = world.tick();
  t.same(actions, [setSize('m', 2)]);
  t.match(report, { desired_ranks: 6, unschedulable: { too_large: 1, capacity: 1, quota: 0 } });
});

t.test('grants whole multiples of ranks only', async (t) => {
  const world = new World(policyOf({ max_ranks: 7 }));
  world.jobs = [jobOf('a', { need: 2, want: 16, multiple: 2 })];
  t.equal(world.tick().report.desired_ranks, 6);
});

t.test('half a gang gives its machines up after a deadline, and tries again ever more seldom', async (t) => {
  const p5 = { name: 'p5', slots: 8, max: 8, price_per_hour: 100 };
  const world = new World(policyOf({ types: [p5] }));
  world.stock = { p5: 2 };
  world.jobs = [jobOf('gang', { need: 32 })];
  let hours = 0;
  const reasons: string[] = [];
  for (let tick = 0; tick < 6 * 360; tick += 1) {
    hours += world.machines.length / 360;
    reasons.push(...world.tick().explain.map(({ job_id, reason }) => `${job_id} ${reason}`));
  }
  t.ok(hours < 3, `${hours} machine-hours instead of 12`);
  t.same([...new Set(reasons)], ['gang gang']);
  t.ok(reasons.length >= 3 && reasons.length <= 5, `${reasons.length} tries`);
  // A smaller job is not held up by it.
  world.jobs.push(jobOf('small', { need: 16 }));
  world.ticks(60);
  t.equal(world.jobs.find(({ id }) => id === 'small')?.held, 16);
  // With all machines the gang starts, at the latest at its next try.
  world.jobs = world.jobs.filter(({ id }) => id === 'gang');
  world.stock = {};
  world.ticks(75 * 6);
  t.equal(world.jobs[0]?.held, 32);
});

t.test('a gang whose machines come one after the other keeps them', async (t) => {
  const world = new World(
    policyOf({ types: [{ name: 'm', slots: 4, max: 10, price_per_hour: 4 }], gang_seconds: 600 }),
  );
  world.jobs = [jobOf('gang', { need: 16 })];
  for (let machines = 1; machines < 4; machines += 1) {
    world.stock = { m: machines };
    world.ticks(9 * 6);
    t.equal(world.machines.length, machines);
  }
  world.stock = {};
  world.ticks(3 * 6);
  t.equal(world.jobs[0]?.held, 16);
});
