/** Tests of the reconcile loop on a real job store with fake machines. */
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { PoolPolicy } from '../platform/config/autoscale-pools.js';
import { createLogger } from '../platform/logging/logging.js';
import { startTestRedis } from '../platform/testing/redis.js';
import { executionAt } from '../state/testing/executions.js';
import { TestPool } from '../state/testing/pools.js';
import { testWorker } from '../state/testing/workers.js';
import { Autoscaler, type AutoscalerOptions } from './autoscaler.js';
import type { Capacity, CapacityView } from './capacity/port.js';
import type { PoolReport } from './controller/types.js';
import { AutoscalerMetrics } from './metrics.js';
import { NOW, policyOf } from './testing/world.js';

const LEASE_MS = 60_000;
const server = await startTestRedis();
t.teardown(() => server.stop());
const log = createLogger({ level: 'silent', name: 'test' });
const policy = policyOf({ idle_seconds: 10 });

/** Fake capacity whose machines appear at once. */
class NamedMachines implements Capacity {
  readonly asked: string[] = [];
  readonly machines = new Map<string, string>();
  wanted: Record<string, number> = { m: 0 };
  fails = false;

  async refresh(): Promise<void> {}

  async view(): Promise<CapacityView> {
    if (this.fails) throw new Error('throttled');
    const machines = [...this.machines].map(([id, type]) => ({ id, type, terminating: false }));
    return { machines, wanted: { ...this.wanted }, problems: [] };
  }

  async want(
    _policy: PoolPolicy,
    type: string,
    machines: number,
    saveSeconds: number | null = null,
  ): Promise<void> {
    this.asked.push(`set_size ${type} ${machines}${saveSeconds === null ? '' : `, saves: ${saveSeconds} s`}`);
    this.wanted[type] = machines;
    while (this.machines.size < machines) this.machines.set(`i-${this.machines.size + 1}`, type);
  }

  async retire(_policy: PoolPolicy, machine: string): Promise<void> {
    this.asked.push(`retire ${machine}`);
    const type = this.machines.get(machine) ?? '';
    this.machines.delete(machine);
    this.wanted[type] = (this.wanted[type] ?? 0) - 1;
  }

  async hold(_policy: PoolPolicy, machines: readonly string[]): Promise<void> {
    for (const machine of machines) this.asked.push(`hold ${machine}`);
  }

  async close(): Promise<void> {}
}

async function start(t: Test, changes: Partial<AutoscalerOptions> = {}) {
  const pool = await TestPool.open(t, server, {});
  const capacity = new NamedMachines();
  const metrics = new AutoscalerMetrics();
  const time = { now: NOW };
  const store = { ...pool.store, now: async () => time.now };
  const create = (more: Partial<AutoscalerOptions> = {}) =>
    new Autoscaler({
      store,
      capacity,
      backgroundTasks: { count: async () => 0 },
      pools: [policy],
      interval_ms: 10,
      metrics,
      publisher: null,
      log,
      ...changes,
      ...more,
    });
  const announce = (id: string, machine: string) =>
    pool.store.announceWorker(testWorker(id, 4, { machine }), LEASE_MS);
  return { pool, store, capacity, metrics, time, create, announce };
}

async function value(metrics: AutoscalerMetrics, name: string): Promise<number> {
  const { text } = await metrics.scrape();
  const line = text.split('\n').find((each) => each.startsWith(`zerofleet_autoscaler_${name} `));
  return Number(line?.split(' ').at(-1));
}

t.test('machines are requested with the longest save of the pool, also by the next leader', async (t) => {
  const { pool, capacity, create, announce, time } = await start(t);
  const first = create();
  await pool.job({ min: 4 });
  await first.reconcile();
  await pool.store.announceWorker(testWorker('w', 4, { machine: 'i-1', save_seconds: 300 }), LEASE_MS);
  await first.reconcile();
  await first.close();
  await announce('w', 'i-1');
  time.now += 1_000;
  const second = create();
  t.teardown(() => second.close());
  await pool.job({ min: 8 });
  await second.reconcile();
  t.same(capacity.asked, ['set_size m 1', 'set_size m 3, saves: 300 s']);
});

t.test('scales up for a queued job and down when the job is done', async (t) => {
  const { pool, capacity, metrics, time, create, announce } = await start(t);
  const autoscaler = create();
  t.teardown(() => autoscaler.close());
  await autoscaler.reconcile();
  t.same(capacity.asked, []);
  const job = await pool.job({ min: 3 });
  await autoscaler.reconcile();
  t.same(capacity.asked, ['set_size m 1']);
  await announce('w', 'i-1');
  t.same(await pool.placements(job), { w: 3 });
  time.now += 60_000;
  await autoscaler.reconcile();
  t.equal(await value(metrics, 'running_ranks{pool="default"}'), 3);
  t.equal(await value(metrics, 'machines{pool="default",type="m",state="running"}'), 1);
  t.equal(await value(metrics, 'leader'), 1);
  await pool.store.requestCancel(job.id);
  await pool.store.finishJob(job.id, executionAt(job.id, 1), 'cancelled');
  await autoscaler.reconcile();
  time.now += 10_000;
  await autoscaler.reconcile();
  t.same(capacity.asked, ['set_size m 1', 'retire i-1']);
  t.equal(await value(metrics, 'actions_total{pool="default",kind="retire",reason="idle"}'), 1);
  t.match(await pool.store.listWorkers(), [{ id: 'w', draining: true }]);
});

t.test('a waiting job is told why it gets no machines, once', async (t) => {
  const small = policyOf({ types: [{ name: 'm', slots: 4, max: 1, price_per_hour: 0 }] });
  const { pool, time, create } = await start(t, { pools: [small] });
  const autoscaler = create();
  t.teardown(() => autoscaler.close());
  const job = await pool.job({ min: 8 });
  for (let round = 0; round < 3; round += 1) {
    time.now += 10_000;
    await autoscaler.reconcile();
  }
  const events = await pool.store.readStream(job.id, null, 10, ['event']);
  t.match(events.slice(1), [{ type: 'job.waiting', data: { reason: 'too_large', message: /more ranks/ } }]);
  t.equal(events.length, 2);
  t.match(await pool.store.listPools(), [
    { machines: { types: [{ type: 'm', requested: 0 }], problems: [] } },
  ]);
});

t.test('a spent budget ends busy machines, and their workers get no more work', async (t) => {
  const priced = policyOf({ budget_per_day: 3, types: [{ name: 'm', slots: 4, max: 4, price_per_hour: 6 }] });
  const { pool, capacity, time, create, announce } = await start(t, { pools: [priced] });
  const autoscaler = create();
  t.teardown(() => autoscaler.close());
  await capacity.want(priced, 'm', 1);
  await announce('w', 'i-1');
  const job = await pool.job({ min: 3 });
  t.same(await pool.placements(job), { w: 3 });
  await autoscaler.reconcile();
  t.same(capacity.asked, ['set_size m 1']);
  time.now += 1800_000;
  await autoscaler.reconcile();
  t.same(capacity.asked, ['set_size m 1', 'retire i-1']);
  t.match(await pool.store.listWorkers(), [{ id: 'w', draining: true }]);
});

t.test('a machine whose jobs fit elsewhere is vacated, then retired', async (t) => {
  const moving = policyOf({ idle_seconds: 10, move_seconds: 40 });
  const { pool, capacity, metrics, time, create, announce } = await start(t, { pools: [moving] });
  const autoscaler = create();
  t.teardown(() => autoscaler.close());
  const reconcile = async (seconds: number) => {
    for (let passed = 0; passed < seconds; passed += 10) {
      time.now += 10_000;
      await autoscaler.reconcile();
    }
  };
  await capacity.want(policy, 'm', 2);
  await announce('w-1', 'i-1');
  const [first, full] = [await pool.job({ min: 1 }), await pool.job({ min: 3 })];
  t.same([await pool.placements(first), await pool.placements(full)], [{ 'w-1': 1 }, { 'w-1': 3 }]);
  await announce('w-2', 'i-2');
  const second = await pool.job({ min: 2 });
  t.same(await pool.placements(second), { 'w-2': 2 });
  await pool.store.finishJob(full.id, executionAt(full.id, 1), 'failed');
  await reconcile(20);
  t.same(await value(metrics, 'actions_total{pool="default",kind="vacate",reason=""}'), Number.NaN);
  await reconcile(30);
  t.equal(await value(metrics, 'actions_total{pool="default",kind="vacate",reason=""}'), 1);
  t.match(await pool.store.listWorkers(), [
    { id: 'w-1', draining: true },
    { id: 'w-2', used_slots: 3 },
  ]);
  await reconcile(30);
  t.same(capacity.asked, ['set_size m 2'], 'it is not retired before its job has left');
  const release = { to: 'queued', reason: 'waiting_for_capacity' } as const;
  await pool.store.releaseAttempt(first.id, executionAt(first.id, 1), release);
  await reconcile(10);
  t.same(capacity.asked, ['set_size m 2', 'retire i-1']);
});

t.test('a machine that got work after the decision is not retired', async (t) => {
  const { pool, store: real, capacity, metrics, time, create, announce } = await start(t);
  await capacity.want(policy, 'm', 1);
  await announce('w', 'i-1');
  const job = await pool.job({ min: 1 });
  // The job arrives between the decision and the action: the decision sees an empty queue.
  let demand = pool.store.readDemand;
  const store = { ...real, readDemand: (...args: Parameters<typeof demand>) => demand(...args) };
  demand = async (pools) => (await pool.store.readDemand(pools)).map((each) => ({ ...each, jobs: [] }));
  const autoscaler = create({ store });
  t.teardown(() => autoscaler.close());
  await autoscaler.reconcile();
  time.now += 20_000;
  await autoscaler.reconcile();
  const before = await pool.store.readDemand(['default']);
  demand = async () => before.map((each) => ({ ...each, jobs: [] }));
  await pool.placements(job);
  time.now += 20_000;
  await autoscaler.reconcile();
  t.same(capacity.asked, ['set_size m 1']);
  t.equal(await value(metrics, 'actions_total{pool="default",kind="retire",reason="busy"}'), 1);
  t.match(await pool.store.listWorkers(), [{ id: 'w', draining: false, used_slots: 1 }]);
});

t.test(
  'of two autoscalers only the leader decides; the follower takes over with the stored state',
  async (t) => {
    const { pool, capacity, time, create, announce } = await start(t);
    const metrics = [new AutoscalerMetrics(), new AutoscalerMetrics()] as const;
    const first = create({ metrics: metrics[0] });
    const second = create({ metrics: metrics[1] });
    t.teardown(() => Promise.all([first.close(), second.close()]));
    await pool.job({ min: 5 });
    for (const autoscaler of [first, second, first, second]) await autoscaler.reconcile();
    t.same(capacity.asked, ['set_size m 2']);
    t.same([await value(metrics[0], 'leader'), await value(metrics[1], 'leader')], [1, 0]);
    await announce('w', 'i-1');
    await announce('v', 'i-2');
    for (const { id } of (await pool.store.readDemand(['default']))[0]?.jobs ?? [])
      await pool.store.requestCancel(id);
    await first.reconcile();
    await first.close();
    time.now += 10_000;
    await second.reconcile();
    t.equal(await value(metrics[1], 'leader'), 1);
    t.same(
      capacity.asked,
      ['set_size m 2', 'retire i-1', 'retire i-2'],
      'idle time counts from the first leader’s observation',
    );
  },
);

t.test('two autoscalers that both believe to lead do no harm', async (t) => {
  const { pool, capacity, time, create, announce } = await start(t);
  // Both are told that they lead: the worst case after a stopped process or a clock jump.
  let state = '';
  const acquireLeaderLease: typeof pool.store.acquireLeaderLease = async (
    _name,
    _holder,
    _ttl,
    text = state,
  ) => {
    state = text;
    return { leads: true, state };
  };
  const store = { ...pool.store, acquireLeaderLease };
  const both = [create({ store }), create({ store })];
  t.teardown(() => Promise.all(both.map((each) => each.close())));
  const job = await pool.job({ min: 6 });
  await Promise.all(both.map((each) => each.reconcile()));
  t.equal(capacity.machines.size, 2, 'desired sizes are absolute and do not add up');
  await announce('w', 'i-1');
  await announce('v', 'i-2');
  await pool.placements(job);
  for (let round = 0; round < 10; round += 1) {
    time.now += 10_000;
    await Promise.all(both.map((each) => each.reconcile()));
  }
  t.equal(capacity.machines.size, 2, 'busy machines are not retired');
  t.notOk(capacity.asked.some((each) => each.startsWith('retire')));
});

t.test('failed reads and actions are retried, and the other pools continue', async (t) => {
  const { pool, capacity, metrics, create } = await start(t);
  const reports: ReadonlyMap<string, PoolReport>[] = [];
  const publisher = {
    publish: async (each: ReadonlyMap<string, PoolReport>) => void reports.push(each),
  };
  const autoscaler = create({ publisher });
  t.teardown(() => autoscaler.close());
  await pool.job({ min: 1 });
  capacity.fails = true;
  await autoscaler.reconcile();
  t.equal(await value(metrics, 'errors_total{service="capacity"}'), 1);
  t.equal(reports[0]?.size, 0);
  capacity.fails = false;
  await autoscaler.reconcile();
  t.same(capacity.asked, ['set_size m 1']);
  t.match(reports[1]?.get('default'), { desired_ranks: 1 });
});

t.test('reconciles until it is closed, and survives an unavailable job store', async (t) => {
  const { pool, capacity, metrics, create } = await start(t);
  let away = true;
  const acquireLeaderLease: typeof pool.store.acquireLeaderLease = async (...args) => {
    if (away) throw new Error('away');
    return pool.store.acquireLeaderLease(...args);
  };
  const autoscaler = create({ store: { ...pool.store, acquireLeaderLease } });
  autoscaler.start();
  await pool.job({ min: 1 });
  while (!((await value(metrics, 'errors_total{service="job_store"}')) >= 1)) await sleep(5);
  t.ok(autoscaler.isHealthy);
  away = false;
  while (capacity.asked.length === 0) await sleep(5);
  t.same(capacity.asked, ['set_size m 1']);
  await autoscaler.close();
  t.match(
    await pool.store.acquireLeaderLease('autoscaler', 'other', 1),
    { leads: true },
    'the leader lease is released',
  );
});
