/** State of machines and types between reconciliations. */
import t from 'tap';
import { machine, poolWith, worker } from '../testing/scene.js';
import { NOW, policyOf } from '../testing/world.js';
import { countFailure, isOverdue, MAX_GAP_MS, observe } from './observe.js';
import {
  EMPTY_STATE,
  type MachineState,
  type PoolSnapshot,
  type PoolState,
  type TypeState,
  type WorkerView,
} from './types.js';

const policy = policyOf({ boot_grace_seconds: 60 });
const LEASE_MS = 30_000;
const UNLISTED_GRACE_MS = 120_000;

interface Scene extends Partial<Pick<PoolSnapshot, 'machines' | 'workers'>> {
  state?: Partial<PoolState>;
}

const observed = ({ state = {}, ...pool }: Scene) =>
  observe(policy, poolWith(pool), { ...EMPTY_STATE, observed_at: NOW - 5_000, ...state }, NOW);

/** Stored state of the machine `a`. */
const stateOf = (before: MachineState | null, workers: WorkerView[], state: Partial<PoolState> = {}) =>
  observed({ machines: [machine('a')], workers, state: { machines: before ? { a: before } : {}, ...state } })
    .machines[0]?.state;

const MISSING: MachineState = { known: false, idle_since: null, missing: { since: NOW - 1000, timeouts: 0 } };
const IDLE: MachineState = { known: true, idle_since: NOW - 7_000, missing: null };

t.test('the longest save that agents report is that of the pool, and stays when they are gone', async (t) => {
  const after = (workers: WorkerView[], stored?: number) =>
    observed({ workers, state: stored === undefined ? {} : { save_seconds: stored } }).save_seconds;
  t.equal(after([]), undefined);
  t.equal(after([worker('a'), worker('b', { save_seconds: 3 }), worker('c', { save_seconds: 40 })]), 40);
  t.equal(after([worker('a')], 40), 40);
  t.equal(after([worker('a', { save_seconds: 5 })], 40), 5, 'the jobs of now count');
});

t.test('a machine without an agent counts as missing from now on', async (t) => {
  t.same(stateOf(null, []), { known: false, idle_since: null, missing: { since: NOW, timeouts: 0 } });
  t.same(stateOf(IDLE, []), { known: true, idle_since: null, missing: { since: NOW, timeouts: 0 } });
  t.same(stateOf(MISSING, []), MISSING);
});

t.test('exceeding the grace period is a strike and restarts it', async (t) => {
  const since = (ms: number, timeouts = 0) => ({ ...MISSING, missing: { since: NOW - ms, timeouts } });
  t.same(stateOf(since(59_999), []), since(59_999));
  t.same(stateOf(since(60_000), []), since(0, 1));
  t.same(stateOf(since(60_000, 1), []), since(0, 2));
});

t.test('a busy agent is neither idle nor missing, an idle one is idle from now on', async (t) => {
  t.same(stateOf(IDLE, [worker('a', { busy: true })]), { known: true, idle_since: null, missing: null });
  t.same(stateOf(MISSING, [worker('a')]), { known: true, idle_since: NOW, missing: null });
  t.same(stateOf(IDLE, [worker('a')]), IDLE);
  const two = [worker('a'), worker('a', { id: 'other', busy: true })];
  t.equal(stateOf(IDLE, two)?.idle_since, null, 'one of several is busy');
});

t.test('time without observations counts as neither idle nor missing', async (t) => {
  const gap = (ms: number) => ({ observed_at: NOW - ms });
  const long = { ...MISSING, missing: { since: NOW - 3_600_000, timeouts: 1 } };
  for (const state of [gap(MAX_GAP_MS + 1), { observed_at: null }]) {
    t.same(stateOf(long, [], state)?.missing, { since: NOW, timeouts: 1 });
    t.equal(stateOf(IDLE, [worker('a')], state)?.idle_since, NOW + LEASE_MS);
  }
  t.same(stateOf(long, [], gap(MAX_GAP_MS))?.missing, { since: NOW, timeouts: 2 });
  t.equal(stateOf(IDLE, [worker('a')], gap(MAX_GAP_MS))?.idle_since, IDLE.idle_since);
});

t.test('leaving machines are ignored', async (t) => {
  const { machines, static_ranks } = observed({
    machines: [machine('a', { terminating: true }), machine('b')],
    workers: [worker('a')],
  });
  t.same(
    machines.map(({ id }) => id),
    ['b'],
  );
  t.equal(static_ranks, 0, 'their agents do not count as unmanaged');
});

t.test('ranks are those of the agents, or of the type without an agent', async (t) => {
  const ranks = (...workers: WorkerView[]) =>
    observed({ machines: [machine('a')], workers }).machines[0]?.ranks;
  t.equal(ranks(), 4);
  t.equal(ranks(worker('a', { slots: 2 }), worker('a', { id: 'other', slots: 3 })), 5);
  t.equal(ranks(worker('a', { draining: true })), 0);
  t.equal(observed({ machines: [machine('a', { type: 'unknown' })] }).machines[0]?.ranks, 0);
});

t.test(
  'agents on unlisted machines count; new ones may run on machines that are not listed yet',
  async (t) => {
    const elsewhere = [
      worker(null, { slots: 1 }),
      worker('x', { slots: 2 }),
      worker('x', { id: 'second', slots: 3 }),
      worker('y', { slots: 4, draining: true }),
    ];
    const found = observed({ machines: [machine('a')], workers: [...elsewhere, worker('a')] });
    t.equal(found.static_ranks, 6);
    t.same(found.unlisted_since, { x: NOW, y: NOW });
    t.equal(found.unlisted, 2);
    const known = (since: number) =>
      observed({ workers: [worker('x')], state: { unlisted_since: { x: since, gone: NOW } } });
    t.same(known(NOW - 1_000).unlisted_since, { x: NOW - 1_000 });
    t.equal(known(NOW - UNLISTED_GRACE_MS + 1).unlisted, 1);
    t.equal(known(NOW - UNLISTED_GRACE_MS).unlisted, 0);
    const first = observed({ workers: [worker('x')], state: { observed_at: null } });
    t.same(first.unlisted_since, { x: 0 }, 'machines of the first observation are not new');
    t.equal(first.unlisted, 0);
  },
);

const FAILED: TypeState = { owed: null, failures: 3, paused_until: 7 };

t.test('a registered agent resets the failures of its type', async (t) => {
  const failures = (before: MachineState | null, workers: WorkerView[]) =>
    observed({
      machines: [machine('a')],
      workers,
      state: { types: { m: FAILED }, machines: before ? { a: before } : {} },
    }).types.get('m')?.state.failures;
  t.equal(failures(MISSING, [worker('a')]), 0);
  t.equal(failures(MISSING, []), 3);
  t.equal(failures(IDLE, [worker('a')]), 3, 'it was present before');
  t.equal(failures(null, [worker('a')]), 3);
});

t.test('a type keeps the numerics of its last agent', async (t) => {
  const numerics = (workers: WorkerView[], before?: string) =>
    observed({
      machines: [machine('a')],
      workers,
      state: { types: { m: before === undefined ? FAILED : { ...FAILED, numerics: before } } },
    }).types.get('m')?.state.numerics;
  t.equal(numerics([]), undefined, 'no agent yet');
  t.equal(numerics([worker('a', { numerics: 'cuda-a/1' })]), 'cuda-a/1');
  t.equal(numerics([worker('a', { numerics: 'cuda-b/1' })], 'cuda-a/1'), 'cuda-b/1');
  t.equal(numerics([], 'cuda-a/1'), 'cuda-a/1', 'also without an agent now');
});

t.test('the state of a type is kept; types missing from the policy are dropped', async (t) => {
  const types = { m: FAILED, gone: FAILED };
  const found = observed({ machines: [machine('b', { type: 'gone' })], state: { types } });
  const [type] = policy.types;
  t.same([...found.types], [['m', { type, state: FAILED }]]);
  t.not(found.types.get('m')?.state, FAILED, 'a copy');
  t.same(observed({}).types.get('m')?.state, { owed: null, failures: 0, paused_until: 0 });
});

t.test('the first failure causes no pause, further ones an exponential backoff', async (t) => {
  const type: TypeState = { owed: null, failures: 0, paused_until: 0 };
  const pauses = [1, 2, 3, 4, 5, 6, 7, 8].map(() => {
    countFailure(type, 60_000, NOW);
    return type.paused_until === 0 ? 0 : (type.paused_until - NOW) / 60_000;
  });
  t.same(pauses, [0, 1, 2, 4, 8, 16, 32, 60]);
  t.equal(type.failures, 8);
});

t.test('machines are overdue when none has appeared within the timeout', async (t) => {
  const type: TypeState = { owed: null, failures: 0, paused_until: 0 };
  const at = (ms: number, owed: number) => isOverdue(type, owed, 60_000, NOW + ms);
  t.equal(at(0, 3), false);
  t.same(type.owed, { since: NOW, machines: 3 });
  t.equal(at(59_999, 3), false);
  t.equal(at(60_000, 3), true);
  t.equal(at(60_000, 2), false, 'one has appeared: the timeout restarts');
  t.same(type.owed, { since: NOW + 60_000, machines: 2 });
  t.equal(at(100_000, 5), false);
  t.same(type.owed, { since: NOW + 60_000, machines: 5 }, 'more were requested: it does not restart');
  t.equal(at(120_000, 5), true);
  t.equal(at(120_000, 0), false);
  t.equal(type.owed, null);
});
