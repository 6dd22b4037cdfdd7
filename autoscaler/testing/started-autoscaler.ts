/** An autoscaler over a test pool, with machines that appear at once. */
import type { Test } from 'tap';
import type { PoolPolicy } from '../../platform/config/autoscale-pools.js';
import { createLogger } from '../../platform/logging/logging.js';
import type { TestRedis } from '../../platform/testing/redis.js';
import { TestPool } from '../../state/testing/pools.js';
import { testWorker } from '../../state/testing/workers.js';
import { Autoscaler, type AutoscalerOptions } from '../autoscaler.js';
import type { Capacity, CapacityView } from '../capacity/port.js';
import { AutoscalerMetrics } from '../metrics.js';
import { NOW, policyOf } from './world.js';

export const LEASE_MS = 60_000;
export const log = createLogger({ level: 'silent', name: 'test' });
export const policy = policyOf({ idle_seconds: 10 });

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

export async function start(t: Test, server: TestRedis, changes: Partial<AutoscalerOptions> = {}) {
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

export async function value(metrics: AutoscalerMetrics, name: string): Promise<number> {
  const { text } = await metrics.scrape();
  const line = text.split('\n').find((each) => each.startsWith(`zerofleet_autoscaler_${name} `));
  return Number(line?.split(' ').at(-1));
}
