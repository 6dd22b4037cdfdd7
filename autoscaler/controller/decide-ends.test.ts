/** Which machines one decision ends. What comes of many in a row is in decide.test.ts. */
import t from 'tap';
import type { PoolPolicy } from '../../platform/config/autoscale-pools.js';
import {
  decided,
  IDLE_S,
  idleFor,
  machine,
  missing,
  paused,
  retire,
  SECOND_MS,
  TWO,
  wants,
  worker,
} from '../testing/scene.js';
import { jobOf, NOW } from '../testing/world.js';
import type { Machine, WorkerView } from './types.js';

t.test('a machine that has handed everything back is ended, unless it works again', async (t) => {
  const drained = (fields: Partial<WorkerView>, more: Partial<Machine> = {}) =>
    decided({
      snapshot: {
        machines: [machine('a', more)],
        workers: [worker('a', fields)],
        drained: ['a', 'elsewhere'],
        jobs: [jobOf('j', { need: 4, held: fields.busy ? 4 : 0 })],
      },
    }).actions;
  t.same(
    drained({ draining: true }),
    [retire('a', 'drained'), wants('m', 1)],
    'and another one is asked for',
  );
  t.same(drained({ draining: true }, { leaving: true }), [retire('a', 'drained'), wants('m', 1)]);
  t.same(drained({ busy: true, free: 0 }), [], 'its agent was started again and has work');
  t.same(drained({ busy: true, draining: true, free: 0 }, { leaving: true }), [wants('m', 1)]);
});

t.test(
  'a machine that leaves is saving until its agent has handed everything back, or is gone',
  async (t) => {
    const leaving = ['saves', 'drained', 'gone'].map((id) => machine(id, { leaving: true }));
    const { saving } = decided({
      snapshot: {
        machines: [machine('stays'), ...leaving],
        workers: [...['stays', 'saves', 'drained'].map((id) => worker(id)), worker(null)],
        drained: ['drained'],
      },
    });
    t.same(saving, ['saves']);
  },
);

t.test('one whose agent is gone since then has handed everything back all the same', async (t) => {
  const { actions, state } = decided({
    snapshot: { machines: [machine('a')], drained: ['a'] },
    state: { machines: { a: missing(2) } },
  });
  t.same(actions, [retire('a', 'drained')]);
  t.equal(state.types.m?.failures, 0);
});

t.test('a machine with several agents works as long as one of them does', async (t) => {
  const workers = [worker('a', { retiring: true }), worker('a', { id: 'second', busy: true })];
  const two = decided({ snapshot: { machines: [machine('a')], workers } });
  t.same(two.actions, []);
  const [first] = workers;
  const one = decided({ snapshot: { machines: [machine('a')], workers: first ? [first] : [] } });
  t.same(one.actions, [retire('a', 'idle')]);
});

t.test('machines without an agent are ended at the second strike, and count as one failure', async (t) => {
  const machines = [machine('a'), machine('b'), machine('c'), machine('d')];
  const { actions, state } = decided({
    snapshot: { machines, jobs: [jobOf('j', { need: 16, held: 0 })] },
    state: { machines: { a: missing(2), b: missing(3), c: missing(1), d: missing(2, true) } },
  });
  t.same(actions.slice(0, 3), [
    retire('a', 'never_registered'),
    retire('b', 'never_registered'),
    retire('d', 'agent_lost'),
  ]);
  t.equal(state.types.m?.failures, 1);
  const known = decided({
    snapshot: { machines: [machine('d')] },
    state: { machines: { d: missing(2, true) } },
  });
  t.equal(known.state.types.m?.failures, 0, 'one that was there before is no failure of its type');
  const nameless = decided({
    snapshot: { machines: [machine('a')], workers: [worker(null)], jobs: [jobOf('j', { held: 1 })] },
    state: { machines: { a: missing(2) } },
  });
  t.same(nameless.actions, []);
  t.equal(nameless.report.anonymous_agents, 1);
});

t.test('failures are those of the type that failed, and of no other', async (t) => {
  const failing = (type: string) =>
    decided({
      policy: TWO,
      snapshot: { machines: [machine('a', { type })] },
      state: { machines: { a: missing(2) } },
    });
  t.match(failing('dear').state.types, { m: { failures: 0 }, dear: { failures: 1 } });
  const gone = failing('gone');
  t.same(gone.actions, [retire('a', 'never_registered')], 'one whose type the policy has no more');
  t.match(gone.state.types, { m: { failures: 0 }, dear: { failures: 0 } });
});

t.test('a type that fails again and again waits', async (t) => {
  const { actions, state } = decided({
    policy: { ...TWO, boot_grace_seconds: 60 },
    snapshot: { machines: [machine('a')], jobs: [jobOf('j', { need: 4 })] },
    state: { machines: { a: missing(2) }, types: { m: paused(0, { failures: 1 }) } },
  });
  t.equal(state.types.m?.paused_until, NOW + 60 * SECOND_MS);
  t.same(actions, [retire('a', 'never_registered'), wants('dear', 1)]);
});

/** Machines with agents that do nothing, for so many seconds each. */
const idle = (seconds: Record<string, number>, types: Record<string, string> = {}) => {
  const ids = Object.keys(seconds);
  return {
    snapshot: {
      machines: ids.map((id) => machine(id, { type: types[id] ?? 'm' })),
      workers: ids.map((id) => worker(id)),
    },
    state: { machines: Object.fromEntries(ids.map((id) => [id, idleFor(seconds[id] ?? 0)])) },
  };
};

t.test('machines go when they have done nothing for their time, the longest first', async (t) => {
  const scene = idle({ a: 130, b: 300, c: IDLE_S, d: IDLE_S - 1 });
  t.same(decided(scene).actions, [retire('b', 'idle'), retire('a', 'idle'), retire('c', 'idle')]);
  const needed = { ...scene, snapshot: { ...scene.snapshot, jobs: [jobOf('j', { need: 9 })] } };
  t.same(decided(needed).actions, [retire('b', 'idle')], 'as many as are too many');
  const just = { ...scene, snapshot: { ...scene.snapshot, jobs: [jobOf('j', { need: 16 })] } };
  t.same(decided(just).actions, []);
  const busy = decided({
    ...scene,
    snapshot: { ...scene.snapshot, workers: scene.snapshot.workers.map((one) => ({ ...one, busy: true })) },
  });
  t.same(busy.actions, []);
});

t.test('the dearest go first', async (t) => {
  const scene = idle({ a: 300, b: 200, c: 200 }, { b: 'dear' });
  const jobs = [jobOf('j', { need: 8 })];
  const dear = { ...scene, policy: TWO, snapshot: { ...scene.snapshot, jobs } };
  t.same(decided(dear).actions, [retire('b', 'idle')]);
  const large: Partial<PoolPolicy> = {
    types: [
      { name: 'm', slots: 4, max: 10, price_per_hour: 4 },
      { name: 'dear', slots: 16, max: 10, price_per_hour: 8 },
    ],
  };
  t.same(decided({ ...dear, policy: large }).actions, [retire('a', 'idle')], 'by what a rank costs');
});

t.test('a machine that is larger than what is too much stays, and a smaller one may go', async (t) => {
  const scene = idle({ a: 300, b: 200 });
  const [large, small] = [worker('a', { slots: 8, free: 8 }), worker('b', { slots: 2, free: 2 })];
  const jobs = [jobOf('j', { need: 8 })];
  t.same(decided({ ...scene, snapshot: { ...scene.snapshot, workers: [large, small], jobs } }).actions, [
    retire('b', 'idle'),
  ]);
});

t.test('requests are taken back first, the dearest before the others, and only whole machines', async (t) => {
  const scene = idle({ a: 300 });
  const left = (need: number) =>
    decided({
      ...scene,
      policy: TWO,
      snapshot: { ...scene.snapshot, wanted: { m: 2, dear: 2 }, jobs: [jobOf('j', { need })] },
    }).actions;
  t.same(left(16), []);
  t.same(left(13), []);
  t.same(left(12), [wants('dear', 1)]);
  t.same(left(5), [wants('dear', 0)]);
  t.same(left(4), [wants('m', 1), wants('dear', 0)], 'the machine that is there stays');
});
