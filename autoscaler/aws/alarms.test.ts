/** Each alarm of a pool goes off by the fault that it is for, on the simulated pool, and by nothing else. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '../../platform/process/root.js';
import { jobOf, policyOf, World } from '../testing/world.js';
import { metricsOf } from './cloudwatch.js';

const TICK_MS = 10_000;
const TICKS_PER_MINUTE = 60_000 / TICK_MS;

const read = (file: string) =>
  readFileSync(join(projectRoot(), 'infra/terraform/modules/observability', file), 'utf8');
const alarms = read('pool-alarms.tf');
const variables = read('variables.tf');

function group(text: string, pattern: RegExp): string {
  const found = pattern.exec(text)?.[1];
  if (found === undefined) throw new Error(`the modules have nothing like ${pattern}`);
  return found;
}

const defaultOf = (name: string) =>
  Number(group(variables, new RegExp(`${name}\\s+= optional\\(number, (\\d+)\\)`)));
const [STUCK, DEAD, STRIKES] = ['stuck_minutes', 'dead_minutes', 'strikes'].map(defaultOf) as [
  number,
  number,
  number,
];

type Metrics = ReturnType<typeof metricsOf>;

/** Evaluates an expression of CloudWatch's metric math, as Terraform has it. */
function expressionOf(text: string): (metrics: Metrics) => number {
  const script = new Function('IF', 'desired', 'running', 'refused', 'working', `return ${text};`);
  const choose = (condition: boolean, yes: number, no: number) => (condition ? yes : no);
  return ({ DesiredRanks, RunningRanks, JobsRefused, MachinesRunning }) =>
    script(choose, DesiredRanks, RunningRanks, JobsRefused, MachinesRunning);
}

const waiting = group(alarms, /^ {2}waiting = "([^"]+)"/m);
const dead = group(alarms, /text\s+= "(IF\(working[^"]+)"/).replace(/\$\{[^}]+\}/, waiting);

interface Alarm {
  value: (metrics: Metrics) => number;
  above: number;
  /** Minutes for which the value is above it. */
  minutes: number;
}

const MAX_MACHINES = 6;
const ALARMS: Record<string, Alarm> = {
  'stuck-queue': { value: expressionOf(waiting), above: 0, minutes: STUCK },
  'dead-pool': { value: expressionOf(dead), above: 0, minutes: DEAD },
  'refused-jobs': { value: ({ JobsRefused }) => JobsRefused, above: 0, minutes: STUCK },
  strikes: { value: ({ Strikes }) => Strikes, above: STRIKES, minutes: 1 },
  'machines-up': { value: ({ MachinesUp }) => MachinesUp, above: MAX_MACHINES, minutes: 15 },
  'budget-of-the-day': { value: ({ BudgetExhausted }) => BudgetExhausted, above: 0, minutes: 1 },
};

const POLICY = {
  types: [
    { name: 'spot', slots: 4, max: 4, price_per_hour: 1 },
    { name: 'on-demand', slots: 4, max: 2, price_per_hour: 3 },
  ],
  boot_grace_seconds: 120,
};

/** Runs a pool for some minutes. Returns the alarms that go off. */
function ringing(world: World, minutes: number, each: (minute: number) => void = () => undefined): string[] {
  const streaks = new Map<string, number>();
  const rang = new Set<string>();
  for (let minute = 0; minute < minutes; minute += 1) {
    each(minute);
    const values = metricsOf(world.ticks(TICKS_PER_MINUTE, TICK_MS).report);
    for (const [name, alarm] of Object.entries(ALARMS)) {
      const streak = alarm.value(values) > alarm.above ? (streaks.get(name) ?? 0) + 1 : 0;
      streaks.set(name, streak);
      if (streak >= alarm.minutes) rang.add(name);
    }
  }
  return [...rang].sort();
}

t.test(
  'a pool that does its work rings nothing: bursts, a full pool, a quota, scaling to zero',
  async (t) => {
    const world = new World(policyOf(POLICY));
    world.bootMs = 180_000;
    world.quotas = { small: 4 };
    const rang = ringing(world, 240, (minute) => {
      if (minute % 60 === 0) {
        world.jobs = Array.from({ length: 9 }, (_, index) => jobOf(`${minute}-${index}`, { need: 4 }));
        world.jobs.push(jobOf(`${minute}-quota`, { need: 8, project: 'small' }));
      }
      // Running jobs are done after a quarter of an hour.
      if (minute % 15 === 14) world.jobs = world.jobs.filter(({ held }) => held === 0);
    });
    t.same(rang, []);
  },
);

t.test('no capacity of any type', async (t) => {
  const world = new World(policyOf(POLICY));
  world.stock = { spot: 0, 'on-demand': 0 };
  world.jobs = [jobOf('a', { need: 4 })];
  t.same(ringing(world, 60), ['dead-pool', 'stuck-queue']);
});

t.test('launches that are refused', async (t) => {
  const world = new World(policyOf(POLICY));
  world.stock = { spot: 0, 'on-demand': 0 };
  world.problems = [
    { type: 'spot', code: 'quota', message: 'x' },
    { type: 'on-demand', code: 'quota', message: 'x' },
  ];
  world.jobs = [jobOf('a', { need: 4 })];
  t.same(ringing(world, 60), ['dead-pool', 'refused-jobs', 'stuck-queue']);
});

t.test('machines whose workers never come up, through all back-off', async (t) => {
  const world = new World(policyOf(POLICY));
  world.bootMs = null;
  world.jobs = [jobOf('a', { need: 4 })];
  t.same(ringing(world, 120), ['dead-pool', 'strikes', 'stuck-queue']);
});

t.test('a job that no machines of the pool can run', async (t) => {
  const world = new World(policyOf(POLICY));
  world.jobs = [jobOf('a', { need: 400 }), jobOf('b', { need: 4 })];
  t.same(ringing(world, 60), ['refused-jobs', 'stuck-queue']);
});

t.test('half a gang', async (t) => {
  const world = new World(policyOf({ ...POLICY, gang_seconds: 600 }));
  world.stock = { spot: 1, 'on-demand': 0 };
  world.jobs = [jobOf('a', { need: 16 })];
  t.same(ringing(world, 120), ['stuck-queue']);
});

t.test('machines that another client starts', async (t) => {
  const world = new World(policyOf(POLICY));
  world.jobs = Array.from({ length: 9 }, (_, index) => jobOf(`${index}`, { need: 4 }));
  const rang = ringing(world, 40, (minute) => {
    if (minute !== 5) return;
    for (const id of ['x', 'y', 'z'])
      world.machines.push({ id, type: 'spot', terminating: false, appeared_at: world.now, worker: null });
  });
  t.same(rang, ['machines-up']);
});

t.test('a spent budget', async (t) => {
  const world = new World(policyOf({ ...POLICY, budget_per_day: 3 }));
  world.jobs = [jobOf('a', { need: 8 })];
  t.ok(ringing(world, 180).includes('budget-of-the-day'));
});
