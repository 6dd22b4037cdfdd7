/** Tests of the reconcile loop on a real job store with fake machines. */
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { startTestRedis } from '../platform/testing/redis.js';
import { executionAt } from '../state/testing/executions.js';
import { testWorker } from '../state/testing/workers.js';
import type { PoolReport } from './controller/types.js';
import { AutoscalerMetrics } from './metrics.js';
import { LEASE_MS, start, value } from './testing/started-autoscaler.js';
import { policyOf } from './testing/world.js';

const server = await startTestRedis();
t.teardown(() => server.stop());

t.test('machines are requested with the longest save of the pool, also by the next leader', async (t) => {
  const { pool, capacity, create, announce, time } = await start(t, server);
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
  const { pool, capacity, metrics, time, create, announce } = await start(t, server);
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
  const { pool, time, create } = await start(t, server, { pools: [small] });
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
  const { pool, capacity, time, create, announce } = await start(t, server, { pools: [priced] });
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

t.test(
  'of two autoscalers only the leader decides; the follower takes over with the stored state',
  async (t) => {
    const { pool, capacity, time, create, announce } = await start(t, server);
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
  const { pool, capacity, time, create, announce } = await start(t, server);
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
  const { pool, capacity, metrics, create } = await start(t, server);
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
  const { pool, capacity, metrics, create } = await start(t, server);
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
