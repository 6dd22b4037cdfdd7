import t from 'tap';
import { runningOf, snapshotOf, waitingOf, workerOf } from '../../scheduler/testing/pool.js';
import {
  decided,
  IDLE_S,
  idleFor,
  machine,
  retire,
  type Scene,
  SECOND_MS,
  worker,
} from '../testing/scene.js';
import { jobOf, NOW } from '../testing/world.js';
import type { PoolState } from './types.js';

const MOVE_S = 100;
const names = ['a', 'b'];

/** A pool with two machines of four slots, where one rank runs on each. */
function scene(since: PoolState['vacatable_since'], fields: Scene = {}): Scene {
  return {
    policy: { idle_seconds: IDLE_S, move_seconds: MOVE_S, ...fields.policy },
    snapshot: {
      jobs: names.map((id) => jobOf(id, { held: 1 })),
      machines: names.map((id) => machine(id)),
      workers: names.map((id) => worker(id, { busy: true, free: 3 })),
      scheduling: snapshotOf({
        workers: names.map((id) => workerOf(`w-${id}`, { slots: 4 })),
        running: names.map((id) => runningOf(id, { [`w-${id}`]: 1 })),
      }),
      ...fields.snapshot,
    },
    state: { observed_at: NOW - 10 * SECOND_MS, vacatable_since: since, ...fields.state },
  };
}

const vacate = (id: string) => ({ kind: 'vacate', machine: id });
/** One of four slots is in use: the move costs a quarter of its seconds in those of the machine. */
const PAYS_S = IDLE_S + MOVE_S / 4;
const before = (seconds: number) => ({ a: NOW - seconds * SECOND_MS });

t.test('a machine whose jobs fit elsewhere is vacated when it has cost more than the move', async (t) => {
  const first = decided(scene({}));
  t.same(first.actions, []);
  t.same(first.state.vacatable_since, { a: NOW }, 'the timer starts');
  t.same(decided(scene(before(PAYS_S - 1))).actions, []);
  t.same(decided(scene(before(PAYS_S))).actions, [vacate('a')]);
  const wide = snapshotOf({
    workers: names.map((id) => workerOf(`w-${id}`, { slots: 4 })),
    running: [runningOf('a', { 'w-a': 2 }), runningOf('b', { 'w-b': 2 })],
  });
  const jobs = names.map((id) => jobOf(id, { need: 2, held: 2 }));
  const larger = (seconds: number) =>
    decided(scene(before(seconds), { snapshot: { jobs, scheduling: wide } })).actions;
  t.same(larger(PAYS_S), [], 'twice as many ranks restart');
  t.same(larger(IDLE_S + MOVE_S / 2), [vacate('a')]);
});

t.test('the empty machine ends, and the one whose move restarts the fewest ranks is vacated', async (t) => {
  const ids = ['a', 'b', 'c', 'empty'];
  const placed = [runningOf('gang', { 'w-a': 1, 'w-b': 3 }), runningOf('alone', { 'w-c': 2 })];
  const due = NOW - 10 * PAYS_S * SECOND_MS;
  const { actions } = decided({
    policy: { idle_seconds: IDLE_S, move_seconds: MOVE_S },
    snapshot: {
      jobs: [jobOf('gang', { need: 4, held: 4 }), jobOf('alone', { need: 2, held: 2 })],
      machines: ids.map((id) => machine(id)),
      workers: ids.map((id) => worker(id, { busy: id !== 'empty' })),
      scheduling: snapshotOf({
        workers: ids.map((id) => workerOf(`w-${id}`, { slots: 4 })),
        running: placed,
      }),
    },
    state: {
      observed_at: NOW - 10 * SECOND_MS,
      machines: { empty: idleFor(IDLE_S) },
      vacatable_since: { a: due, c: due },
    },
  });
  t.same(actions, [retire('empty', 'idle'), vacate('c')], 'two ranks restart, not four');
});

t.test('the timer restarts when the jobs do not fit any more, and after a long gap', async (t) => {
  const [gap] = [{ observed_at: NOW - 60 * SECOND_MS }];
  const after = decided(scene(before(PAYS_S), { state: { ...gap, vacatable_since: before(PAYS_S) } }));
  t.same(after.actions, []);
  t.same(after.state.vacatable_since, { a: NOW });
  const waiting = [waitingOf('w')];
  const { scheduling } = scene({}).snapshot ?? {};
  const queued = decided(
    scene(before(PAYS_S), { snapshot: { scheduling: { ...(scheduling ?? snapshotOf({})), waiting } } }),
  );
  t.same(queued.actions, []);
  t.same(queued.state.vacatable_since, {});
});

t.test(
  'no machine is vacated whose ranks are wanted, that retires, or whose pool moves no jobs',
  async (t) => {
    const due = before(10 * PAYS_S);
    const growing = names.map((id) => jobOf(id, { want: 4, held: 1 }));
    t.same(decided(scene(due, { snapshot: { jobs: growing } })).actions, []);
    t.same(decided(scene(due, { policy: { move_seconds: null } })).actions, []);
    t.same(decided(scene(due, { policy: { min_ranks: 8 } })).actions, []);
    const retiring = [worker('a', { busy: true, free: 0, draining: true, retiring: true })];
    const workers = [...retiring, worker('b', { busy: true, free: 3 })];
    const scheduling = snapshotOf({
      workers: names.map((id) => workerOf(`w-${id}`, { slots: 4, schedulable: id !== 'a' })),
      running: names.map((id) => runningOf(id, { [`w-${id}`]: 1 })),
    });
    const moving = { ...scheduling, running: scheduling.running.map((job) => ({ ...job, move: [] })) };
    t.same(
      decided(scene({}, { snapshot: { workers, scheduling: moving } })).actions,
      [],
      'its jobs move already',
    );
    t.same(
      decided(scene({}, { snapshot: { workers, scheduling } })).actions,
      [vacate('a')],
      'the move failed, for example because its target went away',
    );
  },
);
