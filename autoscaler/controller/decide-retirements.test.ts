/** Machines that one decision retires. Sequences of decisions are tested in decide.test.ts. */
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
  setSize,
  TWO,
  worker,
} from '../testing/scene.js';
import { jobOf, NOW } from '../testing/world.js';
import type { Machine, WorkerView } from './types.js';

t.test('a drained machine is retired unless it is busy again', async (t) => {
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
    [retire('a', 'drained'), setSize('m', 1)],
    'and a replacement is requested',
  );
  t.same(drained({ draining: true }, { terminating: true }), [retire('a', 'drained'), setSize('m', 1)]);
  t.same(drained({ busy: true, free: 0 }), [], 'its agent restarted and has work');
  t.same(drained({ busy: true, draining: true, free: 0 }, { terminating: true }), [setSize('m', 1)]);
});

t.test('a leaving machine is saving until its agent has drained or is gone', async (t) => {
  const leaving = ['saves', 'drained', 'gone'].map((id) => machine(id, { terminating: true }));
  const { saving } = decided({
    snapshot: {
      machines: [machine('stays'), ...leaving],
      workers: [...['stays', 'saves', 'drained'].map((id) => worker(id)), worker(null)],
      drained: ['drained'],
    },
  });
  t.same(saving, ['saves']);
});

t.test('a drained machine whose agent is gone is retired as drained', async (t) => {
  const { actions, state } = decided({
    snapshot: { machines: [machine('a')], drained: ['a'] },
    state: { machines: { a: missing(2) } },
  });
  t.same(actions, [retire('a', 'drained')]);
  t.equal(state.types.m?.failures, 0);
});

t.test('a machine with several agents is busy as long as one of them is', async (t) => {
  const workers = [worker('a', { retiring: true }), worker('a', { id: 'second', busy: true })];
  const two = decided({ snapshot: { machines: [machine('a')], workers } });
  t.same(two.actions, []);
  const [first] = workers;
  const one = decided({ snapshot: { machines: [machine('a')], workers: first ? [first] : [] } });
  t.same(one.actions, [retire('a', 'idle')]);
});

t.test('machines without an agent are retired at the second strike, and count as one failure', async (t) => {
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
  t.equal(known.state.types.m?.failures, 0, 'a lost agent is no failure of the type');
  const nameless = decided({
    snapshot: { machines: [machine('a')], workers: [worker(null)], jobs: [jobOf('j', { held: 1 })] },
    state: { machines: { a: missing(2) } },
  });
  t.same(nameless.actions, []);
  t.equal(nameless.report.unidentified_agents, 1);
});

t.test('failures count for the type that failed only', async (t) => {
  const failing = (type: string) =>
    decided({
      policy: TWO,
      snapshot: { machines: [machine('a', { type })] },
      state: { machines: { a: missing(2) } },
    });
  t.match(failing('expensive').state.types, { m: { failures: 0 }, expensive: { failures: 1 } });
  const gone = failing('gone');
  t.same(gone.actions, [retire('a', 'never_registered')], 'the type is no longer in the policy');
  t.match(gone.state.types, { m: { failures: 0 }, expensive: { failures: 0 } });
});

t.test('a type that fails repeatedly is paused', async (t) => {
  const { actions, state } = decided({
    policy: { ...TWO, boot_grace_seconds: 60 },
    snapshot: { machines: [machine('a')], jobs: [jobOf('j', { need: 4 })] },
    state: { machines: { a: missing(2) }, types: { m: paused(0, { failures: 1 }) } },
  });
  t.equal(state.types.m?.paused_until, NOW + 60 * SECOND_MS);
  t.same(actions, [retire('a', 'never_registered'), setSize('expensive', 1)]);
});

/** Machines whose agents have been idle for the given seconds. */
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

t.test('machines are retired after the idle timeout, the longest idle first', async (t) => {
  const scene = idle({ a: 130, b: 300, c: IDLE_S, d: IDLE_S - 1 });
  t.same(decided(scene).actions, [retire('b', 'idle'), retire('a', 'idle'), retire('c', 'idle')]);
  const needed = { ...scene, snapshot: { ...scene.snapshot, jobs: [jobOf('j', { need: 9 })] } };
  t.same(decided(needed).actions, [retire('b', 'idle')], 'as many as are surplus');
  const just = { ...scene, snapshot: { ...scene.snapshot, jobs: [jobOf('j', { need: 16 })] } };
  t.same(decided(just).actions, []);
  const busy = decided({
    ...scene,
    snapshot: { ...scene.snapshot, workers: scene.snapshot.workers.map((one) => ({ ...one, busy: true })) },
  });
  t.same(busy.actions, []);
});

t.test('the most expensive are retired first', async (t) => {
  const scene = idle({ a: 300, b: 200, c: 200 }, { b: 'expensive' });
  const jobs = [jobOf('j', { need: 8 })];
  const expensive = { ...scene, policy: TWO, snapshot: { ...scene.snapshot, jobs } };
  t.same(decided(expensive).actions, [retire('b', 'idle')]);
  const large: Partial<PoolPolicy> = {
    types: [
      { name: 'm', slots: 4, max: 10, price_per_hour: 4 },
      { name: 'expensive', slots: 16, max: 10, price_per_hour: 8 },
    ],
  };
  t.same(decided({ ...expensive, policy: large }).actions, [retire('a', 'idle')], 'by price per rank');
});

t.test('a machine larger than the surplus stays, and a smaller one is retired', async (t) => {
  const scene = idle({ a: 300, b: 200 });
  const [large, small] = [worker('a', { slots: 8, free: 8 }), worker('b', { slots: 2, free: 2 })];
  const jobs = [jobOf('j', { need: 8 })];
  t.same(decided({ ...scene, snapshot: { ...scene.snapshot, workers: [large, small], jobs } }).actions, [
    retire('b', 'idle'),
  ]);
});

t.test(
  'requests are cancelled before machines are retired, the most expensive first, in whole machines',
  async (t) => {
    const scene = idle({ a: 300 });
    const left = (need: number) =>
      decided({
        ...scene,
        policy: TWO,
        snapshot: { ...scene.snapshot, wanted: { m: 2, expensive: 2 }, jobs: [jobOf('j', { need })] },
      }).actions;
    t.same(left(16), []);
    t.same(left(13), []);
    t.same(left(12), [setSize('expensive', 1)]);
    t.same(left(5), [setSize('expensive', 0)]);
    t.same(left(4), [setSize('m', 1), setSize('expensive', 0)], 'the present machine stays');
  },
);
