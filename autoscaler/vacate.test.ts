import t from 'tap';
import { startTestRedis } from '../platform/testing/redis.js';
import { executionAt } from '../state/testing/executions.js';
import { policy, start, value } from './testing/started-autoscaler.js';
import { policyOf } from './testing/world.js';

const server = await startTestRedis();
t.teardown(() => server.stop());

t.test('a machine whose jobs fit elsewhere is vacated, then retired', async (t) => {
  const moving = policyOf({ idle_seconds: 10, move_seconds: 40 });
  const { pool, capacity, metrics, time, create, announce } = await start(t, server, { pools: [moving] });
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
  const { pool, store: real, capacity, metrics, time, create, announce } = await start(t, server);
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
