/** Calls to the source of machines that get no answer, on a real job store. */
import t from 'tap';
import type { PoolPolicy } from '../platform/config/autoscale-pools.js';
import { createLogger } from '../platform/logging/logging.js';
import { startTestRedis } from '../platform/testing/redis.js';
import { TestPool } from '../state/testing/pools.js';
import { Autoscaler } from './autoscaler.js';
import type { Capacity, CapacityView } from './capacity/port.js';
import { AutoscalerMetrics } from './metrics.js';
import { policyOf } from './testing/world.js';

/** Machines of two pools; calls about one of them get no answer. */
class HalfDead implements Capacity {
  readonly asked: string[] = [];
  answers = new AbortController();

  async refresh(): Promise<void> {}

  async view({ pool, types }: PoolPolicy): Promise<CapacityView> {
    if (pool === 'dead') await this.untilAnswered();
    return { machines: [], wanted: Object.fromEntries(types.map(({ name }) => [name, 0])), problems: [] };
  }

  async want({ pool }: PoolPolicy, type: string, machines: number): Promise<void> {
    this.asked.push(`${pool} ${type} ${machines}`);
  }

  async retire(): Promise<void> {}
  async hold(): Promise<void> {}
  async close(): Promise<void> {}

  private untilAnswered(): Promise<void> {
    const { signal } = this.answers;
    return signal.aborted
      ? Promise.resolve()
      : new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
  }
}

t.test('a call without an answer delays no other pool', async (t) => {
  const server = await startTestRedis();
  t.teardown(() => server.stop());
  const pool = await TestPool.open(t, server, {});
  const capacity = new HalfDead();
  const autoscaler = new Autoscaler({
    store: pool.store,
    capacity,
    backgroundTasks: { count: async () => 1 },
    pools: [policyOf({ pool: 'dead' }), policyOf({ pool: 'alive' })],
    interval_ms: 10,
    metrics: new AutoscalerMetrics(),
    publisher: null,
    log: createLogger({ level: 'silent', name: 'test' }),
  });
  t.teardown(() => autoscaler.close());
  await autoscaler.reconcile();
  t.same(capacity.asked, ['alive m 1']);
  const began = performance.now();
  await autoscaler.reconcile();
  t.same(capacity.asked, ['alive m 1', 'alive m 1']);
  t.ok(performance.now() - began < 5_000, 'the pool whose call is in progress is left out');
  capacity.answers.abort();
  await autoscaler.reconcile();
  await autoscaler.reconcile();
  t.ok(capacity.asked.includes('dead m 1'));
});
