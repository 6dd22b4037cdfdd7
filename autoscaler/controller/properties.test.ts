import fc from 'fast-check';
import t from 'tap';
import type { PoolPolicy } from '../../platform/config/autoscale-pools.js';
import { snapshotOf } from '../../scheduler/testing/pool.js';
import { jobOf, NOW, policyOf, World } from '../testing/world.js';
import { chooseMachines } from './choose.js';
import { decide } from './decide.js';
import type { PoolSnapshot, PoolState } from './types.js';

const RUNS = { numRuns: 400 };

const type = (name: string) =>
  fc.record({
    name: fc.constant(name),
    slots: fc.constantFrom(1, 2, 4, 8),
    max: fc.integer({ min: 1, max: 12 }),
    price_per_hour: fc.integer({ min: 0, max: 40 }),
  });

const policies: fc.Arbitrary<PoolPolicy> = fc
  .record(
    {
      types: fc.tuple(type('a'), type('b')),
      max_ranks: fc.integer({ min: 1, max: 100 }),
      min_ranks: fc.integer({ min: 0, max: 4 }),
      idle_seconds: fc.integer({ min: 0, max: 600 }),
      budget_per_day: fc.integer({ min: 0, max: 500 }),
      on_budget: fc.constantFrom('pause' as const, 'finish' as const),
      gang_seconds: fc.integer({ min: 1, max: 600 }),
    },
    { requiredKeys: ['types'] },
  )
  .map((fields) => policyOf(fields));

const jobs = fc
  .record({
    project: fc.constantFrom('p', 'q'),
    priority: fc.integer({ min: -2, max: 2 }),
    need: fc.integer({ min: 1, max: 24 }),
    more: fc.integer({ min: 0, max: 24 }),
    holds: fc.boolean(),
  })
  .map(({ more, holds, ...fields }) => ({
    ...fields,
    want: fields.need + more,
    held: holds ? fields.need : 0,
  }));

const snapshots: fc.Arbitrary<PoolSnapshot> = fc
  .record({
    jobs: fc.array(jobs, { maxLength: 12 }),
    backgroundTasks: fc.integer({ min: 0, max: 2 }),
    machines: fc.array(
      fc.record({
        type: fc.constantFrom('a', 'b'),
        terminating: fc.boolean(),
        agent: fc.constantFrom(null, 'idle', 'busy', 'draining', 'retiring', 'drained', 'restarted'),
      }),
      { maxLength: 20 },
    ),
    wanted: fc.record({ a: fc.integer({ min: 0, max: 12 }), b: fc.integer({ min: 0, max: 12 }) }),
    quotas: fc.constantFrom<Record<string, number>>({}, { p: 10 }),
    problems: fc.constantFrom<PoolSnapshot['problems']>([], [{ type: 'a', code: 'quota', message: 'no' }]),
  })
  .map(({ jobs, machines, ...rest }) => ({
    ...rest,
    scheduling: snapshotOf({}),
    jobs: jobs.map((fields, index) => jobOf(`job-${index}`, fields)),
    machines: machines.map(({ type, terminating }, index) => ({ id: `i-${index}`, type, terminating })),
    drained: machines.flatMap(({ agent }, index) =>
      agent === 'drained' || agent === 'restarted' ? [`i-${index}`] : [],
    ),
    workers: machines.flatMap(({ agent }, index) => {
      if (agent === null || agent === 'drained') return [];
      const draining = agent === 'draining' || agent === 'retiring';
      const busy = agent === 'busy' || agent === 'restarted';
      return [
        {
          id: `w-${index}`,
          machine: `i-${index}`,
          numerics: index % 3 === 0 ? 'other' : null,
          slots: 4,
          free: busy || draining ? 0 : 4,
          busy,
          draining,
          retiring: agent === 'retiring',
          save_seconds: null,
        },
      ];
    }),
  }));

/** Possible stored states for the machines of a snapshot. */
const states = fc
  .tuple(snapshots, fc.array(fc.integer({ min: 0, max: 900 }), { minLength: 20, maxLength: 20 }))
  .map(([snapshot, ages]): [PoolSnapshot, PoolState] => {
    const since = (index: number) => NOW - 1000 * (ages[index] ?? 0);
    const machines = snapshot.machines.map(({ id }, index) => {
      const known = snapshot.workers.some(({ machine }) => machine === id);
      const missing = known ? null : { since: since(index), timeouts: (ages[index] ?? 0) % 3 };
      return [id, { known, idle_since: known ? since(index) : null, missing }] as const;
    });
    const spent = { day: '2026-11-22', amount: (ages[0] ?? 0) / 2 };
    return [
      snapshot,
      {
        observed_at: NOW - 5_000,
        machines: Object.fromEntries(machines),
        types: {},
        unlisted_since: {},
        vacatable_since: {},
        gangs: {},
        wait_reasons: {},
        spent,
      },
    ];
  });

function frozen<T>(value: T): T {
  for (const part of Object.values(value as object))
    if (typeof part === 'object' && part !== null) frozen(part);
  return Object.freeze(value);
}

const situations = fc
  .tuple(policies, states)
  .map(([policy, [snapshot, state]]) => frozen({ policy, snapshot, state }));

const staying = ({ machines }: PoolSnapshot, name: string, retired: ReadonlySet<string>) =>
  machines.filter(({ id, type, terminating }) => type === name && !terminating && !retired.has(id)).length;

/** Checks that no busy machine is retired. */
function checkRetired({ workers }: PoolSnapshot, retired: ReadonlySet<string>): void {
  const taken = workers.find(({ busy, machine }) => busy && machine !== null && retired.has(machine));
  if (taken) throw new Error(`${taken.machine} is busy`);
}

/** Checks that the wanted size ends no machine and exceeds neither the maximum nor the present size. */
function checkWanted(
  snapshot: PoolSnapshot,
  { name, max, price_per_hour }: PoolPolicy['types'][number],
  { retired, exhausted, wanted }: { retired: ReadonlySet<string>; exhausted: boolean; wanted: number },
): void {
  const there = staying(snapshot, name, retired);
  const before = Math.max(snapshot.wanted[name] ?? 0, staying(snapshot, name, new Set()));
  // Retiring a machine lowers the size.
  const size = (snapshot.wanted[name] ?? 0) - (staying(snapshot, name, new Set()) - there);
  if (wanted < Math.min(there, size)) throw new Error(`${name}: ${wanted} would end one of ${there}`);
  if (wanted > Math.max(max, before)) throw new Error(`${name}: ${wanted} of ${max}`);
  if (exhausted && price_per_hour > 0 && wanted > before) throw new Error('beyond the budget');
}

t.test('the invariants hold in any situation', async () => {
  fc.assert(
    fc.property(situations, ({ policy, snapshot, state }) => {
      const decision = decide(policy, snapshot, state, NOW);
      const { actions, report, state: after } = decision;
      const json = JSON.stringify(decision);
      if (JSON.stringify(decide(policy, snapshot, state, NOW)) !== json) throw new Error('not deterministic');
      if (JSON.stringify(JSON.parse(json)) !== json) throw new Error('not JSON');
      const retired = new Set(
        actions.flatMap((action) => (action.kind === 'retire' ? [action.machine] : [])),
      );
      const exhausted = policy.budget_per_day !== undefined && after.spent.amount >= policy.budget_per_day;
      const overBudget = actions.filter((action) => action.kind === 'retire' && action.reason === 'budget');
      if (overBudget.length > 0 && (!exhausted || policy.on_budget !== 'pause'))
        throw new Error('within the budget');
      // Machines beyond the budget are ended with their jobs, which save.
      const others = actions.filter((action) => !overBudget.includes(action));
      checkRetired(
        snapshot,
        new Set(others.flatMap((action) => (action.kind === 'retire' ? [action.machine] : []))),
      );
      for (const action of actions) {
        const type = policy.types.find(({ name }) => action.kind === 'set_size' && name === action.type);
        if (type && action.kind === 'set_size')
          checkWanted(snapshot, type, { retired, exhausted, wanted: action.machines });
      }
      if (!(report.desired_ranks >= 0)) throw new Error('not a number');
    }),
    RUNS,
  );
});

t.test('chosen machines suffice, or are all that exist, and none is superfluous', async () => {
  const supplies = fc.array(
    fc.record({
      slots: fc.integer({ min: 1, max: 16 }),
      machines: fc.integer({ min: 0, max: 6 }),
      price_per_hour: fc.integer({ min: 0, max: 50 }),
    }),
    { minLength: 1, maxLength: 4 },
  );
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 80 }), supplies, (ranks, given) => {
      const list = given.map(({ slots, machines, price_per_hour }, index) => ({
        type: { name: `t${index}`, slots, max: 10, price_per_hour },
        machines,
      }));
      const chosen = chooseMachines(ranks, list);
      const slots = list.reduce((sum, { type }) => sum + type.slots * (chosen.get(type.name) ?? 0), 0);
      const all = list.reduce((sum, { type, machines }) => sum + type.slots * machines, 0);
      if (slots < Math.min(ranks, all)) throw new Error(`${slots} of ${ranks}`);
      for (const { type, machines } of list) {
        const count = chosen.get(type.name) ?? 0;
        if (count > machines) throw new Error(`${count} of ${machines}`);
        if (count > 0 && slots - type.slots >= ranks) throw new Error(`one ${type.name} too many`);
      }
    }),
    RUNS,
  );
});

t.test('every situation becomes stable with what the jobs want, and without jobs at zero', async () => {
  fc.assert(
    fc.property(
      policies,
      fc.array(jobs, { maxLength: 10 }),
      fc.integer({ min: 10, max: 250 }),
      fc.boolean(),
      (policy, list, boot, alike) => {
        // A gang that is never complete is tried again and again.
        const patient = { ...policy, gang_seconds: 1e6 };
        const world = new World({ ...patient, min_ranks: 0, budget_per_day: undefined });
        world.bootMs = boot * 1000;
        if (!alike) world.numerics = { a: 'cuda-a/1', b: 'cuda-b/1' };
        world.jobs = list.map((fields, index) => jobOf(`job-${index}`, { ...fields, held: 0 }));
        world.ticks(120);
        const { report } = world.tick();
        if (report.provisioned_ranks < report.desired_ranks)
          throw new Error(`${report.provisioned_ranks} ranks of ${report.desired_ranks}`);
        const rest = world.ticks(200).actions;
        if (rest.length > 0) throw new Error(`not stable: ${JSON.stringify(rest)}`);
        if (world.retired.some(({ busy }) => busy)) throw new Error('a busy machine was retired');
        world.jobs = [];
        world.place();
        world.ticks(120);
        if (world.machines.length > 0) throw new Error(`${world.machines.length} machines are left`);
      },
    ),
    { numRuns: 60 },
  );
});
