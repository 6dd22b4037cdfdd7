/** Machines that one decision requests, and its report. */
import t from 'tap';
import type { PoolPolicy } from '../../platform/config/autoscale-pools.js';
import {
  decided,
  idleFor,
  machine,
  missing,
  paused,
  SECOND_MS,
  setSize,
  TWO,
  worker,
} from '../testing/scene.js';
import { jobOf, NOW, policyOf } from '../testing/world.js';
import type { TypeState } from './types.js';

t.test('requested machines count, and unlisted agents run on some of them', async (t) => {
  const scene = (unlistedSince: number, wanted: Record<string, number>) =>
    decided({
      policy: TWO,
      snapshot: {
        machines: [machine('a')],
        workers: [worker('a'), ...Array.from({ length: unlistedSince }, (_, i) => worker(`new-${i}`))],
        wanted,
        jobs: [jobOf('j', { need: 16, held: 0 })],
      },
      state: { machines: { a: idleFor(0) } },
    });
  const requestedOf = (unlistedSince: number, wanted: Record<string, number>) => {
    const { report, actions } = scene(unlistedSince, wanted);
    return [
      report.machines.m?.requested,
      report.machines.expensive?.requested,
      report.provisioned_ranks,
      actions,
    ];
  };
  t.same(requestedOf(0, { m: 4 }), [3, 0, 16, []]);
  t.same(requestedOf(2, { m: 4 }), [1, 0, 16, []]);
  t.same(requestedOf(2, { m: 2, expensive: 2 }), [0, 1, 16, []], 'of two types, first those of the first');
  t.same(requestedOf(9, { m: 4 })[0], 0);
  t.same(
    requestedOf(0, { m: 0 })[3],
    [setSize('m', 3)],
    'the one that was not requested does not raise the size',
  );
});

t.test('a type whose launches time out is replaced by an available one', async (t) => {
  const owed = { since: NOW - 180 * SECOND_MS, machines: 2 };
  const overdue = (types: Record<string, TypeState>, policy = TWO) =>
    decided({
      policy: { launch_timeout_seconds: 180, ...policy },
      snapshot: { wanted: { m: 2 }, jobs: [jobOf('j', { need: 8 })] },
      state: { types },
    });
  const taken = overdue({ m: paused(0, { owed }) });
  t.same(taken.actions, [setSize('m', 0), setSize('expensive', 2)]);
  t.equal(taken.state.types.m?.paused_until, NOW + 300 * SECOND_MS);
  const longer = overdue({ m: paused(NOW + 900 * SECOND_MS, { owed }) });
  t.equal(longer.state.types.m?.paused_until, NOW + 900 * SECOND_MS, 'a pause is not shortened');
  const both = overdue({ m: paused(0, { owed }), expensive: paused(NOW + 1) });
  t.same(both.actions, [], 'the other type is not available either');
  t.equal(both.state.types.m?.paused_until, 0);
  const again = overdue({ m: paused(0, { owed }), expensive: paused(NOW) });
  t.same(again.actions, [setSize('m', 0), setSize('expensive', 2)], 'its pause has expired');
  const [only] = policyOf().types;
  t.same(
    overdue({ m: paused(0, { owed }) }, { types: only ? [only] : [] }).actions,
    [],
    'there is no other type',
  );
  const soon = { since: NOW - 180 * SECOND_MS + 1, machines: 2 };
  t.same(overdue({ m: paused(0, { owed: soon }) }).actions, [], 'the timeout has not expired');
});

t.test('paused and exhausted types are not requested', async (t) => {
  const asked = (types: Record<string, TypeState>, policy: Partial<PoolPolicy> = TWO) =>
    decided({ policy, snapshot: { jobs: [jobOf('j', { need: 4 })] }, state: { types } }).actions;
  t.same(asked({ m: paused(NOW + 1) }), [setSize('expensive', 1)]);
  t.same(asked({ m: paused(NOW) }), [setSize('m', 1)]);
  const few = decided({
    policy: {
      types: [
        { name: 'm', slots: 4, max: 2, price_per_hour: 4 },
        { name: 'expensive', slots: 4, max: 10, price_per_hour: 8 },
      ],
    },
    snapshot: {
      machines: [machine('a')],
      workers: [worker('a', { busy: true, free: 0 })],
      wanted: { m: 1 },
      jobs: [jobOf('j', { need: 4, held: 4 }), jobOf('k', { need: 8 })],
    },
  });
  t.same(few.actions, [setSize('m', 2), setSize('expensive', 1)]);
  const many = decided({
    policy: { types: [{ name: 'm', slots: 4, max: 1, price_per_hour: 4 }] },
    snapshot: {
      machines: ['a', 'b'].map((id) => machine(id)),
      workers: ['a', 'b'].map((id) => worker(id, { busy: true, free: 0 })),
      jobs: [jobOf('j', { need: 8, held: 8 })],
    },
  });
  t.same(many.actions, [], 'the maximum was lowered below the present machines');
});

t.test('the budget pays first for present and requested machines', async (t) => {
  const asked = (budgetPerDay: number, wanted: Record<string, number>) =>
    decided({
      policy: { budget_per_day: budgetPerDay },
      snapshot: {
        machines: [machine('a')],
        workers: [worker('a'), worker('new')],
        wanted: { m: 1, ...wanted },
        jobs: [jobOf('j', { need: 1, want: 40 })],
      },
      state: { machines: { a: idleFor(0) }, spent: { day: '2026-11-22', amount: 0 } },
    });
  // The machine cost 4 * 5 / 3600 since the last observation.
  t.same(asked(8.01, {}).actions, [setSize('m', 2)]);
  t.same(asked(7.99, {}).actions, []);
  t.same(asked(12.01, { m: 2 }).actions, [setSize('m', 3)], 'one of them is that of the new agent');
  t.same(asked(11.99, { m: 2 }).actions, []);
  t.same(asked(16.01, { m: 3 }).actions, [setSize('m', 4)]);
  t.same(asked(15.99, { m: 3 }).actions, []);
});

t.test('spending covers all machines, including those that are leaving', async (t) => {
  const machines = [
    machine('a'),
    machine('b', { terminating: true }),
    machine('c', { type: 'expensive' }),
    machine('d', { type: 'gone' }),
  ];
  const spent = (observedAt: number, budgetPerDay?: number) =>
    decided({
      policy: { ...TWO, ...(budgetPerDay !== undefined && { budget_per_day: budgetPerDay }) },
      snapshot: { machines, workers: machines.map(({ id }) => worker(id, { busy: true })) },
      state: { observed_at: observedAt, spent: { day: '2026-11-22', amount: 1 } },
    });
  const half = spent(NOW - 1800 * SECOND_MS, 9);
  t.same(half.state.spent, { day: '2026-11-22', amount: 9 });
  t.match(half.report, { daily_cost: 9, budget_exhausted: true });
  t.match(spent(NOW - 1800 * SECOND_MS, 9.5).report, { budget_exhausted: false });
  t.match(spent(NOW - 1800 * SECOND_MS).report, { daily_cost: 9, budget_exhausted: false });
});

t.test('requests no more than the maximum of ranks beside unmanaged machines', async (t) => {
  const wanted = (maxRanks: number | undefined, own: number) =>
    decided({
      policy: {
        types: [{ name: 'm', slots: 4, max: 2, price_per_hour: 4 }],
        ...(maxRanks !== undefined && { max_ranks: maxRanks }),
      },
      snapshot: {
        workers: own > 0 ? [worker('own', { slots: own, free: own })] : [],
        jobs: [jobOf('j', { need: 1, want: 100 }), jobOf('k', { need: 9 })],
      },
      state: { unlisted_since: { own: 0 } },
    }).report;
  t.match(wanted(undefined, 0), { desired_ranks: 8, unschedulable: { too_large: 1 } });
  t.match(wanted(6, 0), { desired_ranks: 6 });
  t.match(wanted(60, 0), { desired_ranks: 8 });
  t.match(wanted(6, 3), { desired_ranks: 9, unschedulable: { too_large: 0, capacity: 1 } });
});

t.test('keeps the minimum of ranks, and one for background tasks', async (t) => {
  const ranks = (minRanks: number, backgroundTasks: number, maxRanks = 100) =>
    decided({ policy: { min_ranks: minRanks, max_ranks: maxRanks }, snapshot: { backgroundTasks } }).report
      .desired_ranks;
  t.equal(ranks(0, 0), 0);
  t.equal(ranks(0, 1), 1);
  t.equal(ranks(5, 0), 5);
  t.equal(ranks(5, 1), 5);
  t.equal(ranks(5, 0, 3), 3, 'up to the maximum');
});

t.test('reports the state of the pool', async (t) => {
  const { report } = decided({
    policy: TWO,
    snapshot: {
      machines: [
        machine('running'),
        machine('up too'),
        machine('boots'),
        machine('leaves', { terminating: true }),
        machine('drained'),
        machine('lost', { type: 'expensive' }),
      ],
      workers: [
        worker('running', { busy: true, free: 0 }),
        worker('up too', { busy: true, free: 0 }),
        worker('drained', { draining: true }),
      ],
      wanted: { m: 5, expensive: 1 },
      drained: ['drained'],
      jobs: [jobOf('j', { need: 4, held: 4 }), jobOf('k', { need: 2, held: 2 }), jobOf('l', { need: 9 })],
    },
    state: {
      machines: { boots: missing(1), lost: missing(2, true), drained: idleFor(3) },
    },
  });
  t.match(report, {
    running_ranks: 6,
    desired_ranks: 15,
    provisioned_ranks: 16,
    machines: {
      m: { running: 2, starting: 1, requested: 1, terminating: 2 },
      expensive: { running: 0, starting: 0, requested: 0, terminating: 1 },
    },
    idle_machines: 1,
    missing_agent_timeouts: 3,
    unidentified_agents: 0,
  });
});

t.test('the state covers present machines and unlisted machines only', async (t) => {
  const { state } = decided({
    snapshot: { machines: [machine('a')], workers: [worker('a'), worker('x')] },
    state: { machines: { gone: missing(1) }, unlisted_since: { gone: 0 } },
  });
  t.same(Object.keys(state.machines), ['a']);
  t.same(state.unlisted_since, { x: NOW });
  t.equal(state.observed_at, NOW);
});

t.test('a type whose launches are refused is left for the next one at once, and jobs are told', async (t) => {
  const jobs = [jobOf('a', { need: 4 })];
  const problems = [{ type: 'm', code: 'quota', message: 'the vCPU limit is 0' }] as const;
  const { actions, explain, report } = decided({
    policy: TWO,
    snapshot: { jobs, wanted: { m: 1 }, problems },
  });
  t.same(actions, [setSize('m', 0), setSize('expensive', 1)]);
  t.match(explain, [{ job_id: 'a', reason: 'launch_failed', message: /m: the vCPU limit is 0/ }]);
  t.same(report.problems, problems);
  t.same(
    decided({ snapshot: { jobs, wanted: { m: 1 }, problems } }).actions,
    [],
    'the only type stays requested',
  );
});

t.test('successors that a source launches first do not raise the size', async (t) => {
  const snapshot = {
    jobs: [jobOf('a', { need: 8, held: 8 })],
    machines: ['1', '2', '3'].map((id) => machine(id)),
    workers: ['1', '2'].map((on) => worker(on, { free: 0, busy: true })),
    wanted: { m: 2 },
  };
  t.same(decided({ snapshot }).actions, []);
  const more = { ...snapshot, jobs: [...snapshot.jobs, jobOf('b', { need: 8 })] };
  t.same(
    decided({ snapshot: more }).actions,
    [setSize('m', 3)],
    'one more for the job, none for the successor',
  );
});
