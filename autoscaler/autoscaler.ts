/**
 * The loop around the controller: looks, decides, remembers, acts. Only the one that holds the office acts, and only as long as it
 * is sure to hold it. What it does may be done twice without harm: sizes are absolute, a machine is taken by its id, and before that
 * the job store keeps new work away from it in the same step in which it finds that none is there.
 */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PoolPolicy } from '../platform/config/autoscale-pools.js';
import type { Logger } from '../platform/logging/logging.js';
import type { JobStorePort } from '../state/index.js';
import type { Capacity, CapacityView } from './capacity/port.js';
import { decide } from './controller/decide.js';
import {
  type Action,
  type Decision,
  EMPTY_STATE,
  type PoolReport,
  type PoolState,
} from './controller/types.js';
import type { AutoscalerMetrics } from './metrics.js';
import type { Publisher } from './publisher.js';

/** What the autoscaler needs of the job store. */
export type ScalingStore = Pick<
  JobStorePort,
  'now' | 'lead' | 'readDemand' | 'retireWorkers' | 'drainedMachines' | 'listWorkers'
>;

export interface AutoscalerOptions {
  store: ScalingStore;
  capacity: Capacity;
  /** What a pool is asked to do beside training. */
  errands: { count(pool: string): Promise<number> };
  pools: readonly PoolPolicy[];
  interval_ms: number;
  metrics: AutoscalerMetrics;
  publisher: Publisher | null;
  log: Logger;
}

const OFFICE = 'autoscaler';
/** Of silence, after which another one takes over. */
const LEAD_MS = 30_000;
/** Nothing is begun when the office is held for less than this. */
const MARGIN_MS = 5_000;
const UNHEALTHY_MS = 120_000;

interface Look {
  decisions: Map<PoolPolicy, Decision>;
  reports: ReadonlyMap<string, PoolReport>;
  /** By the monotonic clock; until then nobody else decides. */
  until: number;
}

export class Autoscaler {
  readonly id = `${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`;
  private readonly stopping = new AbortController();
  private loop: Promise<void> | null = null;
  private looked_at = performance.now();
  private leads = false;
  private publishing: Promise<void> | null = null;

  constructor(private readonly options: AutoscalerOptions) {}

  /** Looks now, and again and again until `close`. */
  start(): void {
    this.loop ??= this.run();
  }

  /** Whether it looked, or stood by, not long ago. */
  get isHealthy(): boolean {
    return performance.now() - this.looked_at < UNHEALTHY_MS;
  }

  /** Gives up the office; what is there stays. Idempotent. */
  async close(): Promise<void> {
    this.stopping.abort();
    await this.loop;
    await this.publishing;
    if (!this.leads) return;
    this.leads = false;
    await this.options.store.lead(OFFICE, this.id, 0).catch((error: unknown) => {
      this.options.log.warn({ err: error }, 'office not given up; it is free when its time has run out');
    });
  }

  /** One look at all pools, with what follows from it. Does not reject. */
  async look(): Promise<void> {
    const { metrics, log } = this.options;
    const began = performance.now();
    try {
      const look = await this.decideAll();
      if (look) {
        for (const [policy, decision] of look.decisions) await this.act(policy, decision, look.until);
        this.publish(look.reports);
      }
      this.looked_at = performance.now();
    } catch (error) {
      metrics.failed('job_store');
      log.warn({ err: error }, 'nothing can be decided: the job store does not answer');
    }
    metrics.looked((performance.now() - began) / 1000);
  }

  private async run(): Promise<void> {
    const { interval_ms } = this.options;
    const { signal } = this.stopping;
    while (!signal.aborted) {
      await this.look();
      await sleep(interval_ms, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Decides for every pool whose machines can be seen, and remembers it. Null for one that stands by. */
  private async decideAll(): Promise<Look | null> {
    const { store, pools, metrics } = this.options;
    const began = performance.now();
    const office = await store.lead(OFFICE, this.id, LEAD_MS);
    this.tellOffice(office.leads);
    if (!office.leads) return null;
    const states = statesOf(office.memory);
    // Whoever decides next goes on with what is remembered here, so it can't be a clock of this machine.
    const now = await store.now();
    const demands = await store.readDemand(pools.map(({ pool }) => pool));
    const drained = await store.drainedMachines();
    const decisions: Look['decisions'] = new Map();
    for (const policy of pools) {
      const demand = demands.find(({ name }) => name === policy.pool);
      const view = await this.view(policy);
      if (!demand || !view) continue;
      const errands = await this.options.errands.count(policy.pool);
      const snapshot = { ...demand, errands, ...view, drained };
      decisions.set(policy, decide(policy, snapshot, states[policy.pool] ?? EMPTY_STATE, now));
    }
    for (const [{ pool }, { state }] of decisions) states[pool] = state;
    const kept = await store.lead(OFFICE, this.id, LEAD_MS, JSON.stringify(states));
    this.tellOffice(kept.leads);
    if (!kept.leads) return null;
    const reports = new Map(
      [...decisions].map(([{ pool }, { report }]): [string, PoolReport] => [pool, report]),
    );
    for (const [pool, report] of reports) metrics.decided(pool, report);
    return { decisions, reports, until: began + LEAD_MS - MARGIN_MS };
  }

  /** Nobody waits for it; while it takes long nothing more is sent. */
  private publish(reports: ReadonlyMap<string, PoolReport>): void {
    this.publishing ??= this.options.publisher
      ? this.options.publisher.publish(reports).finally(() => {
          this.publishing = null;
        })
      : null;
  }

  private tellOffice(leads: boolean): void {
    if (leads !== this.leads)
      this.options.log.info({ id: this.id }, leads ? 'decides from now on' : 'stands by');
    this.leads = leads;
    this.options.metrics.leading(leads);
  }

  private async view(policy: PoolPolicy): Promise<CapacityView | null> {
    try {
      return await this.options.capacity.view(policy);
    } catch (error) {
      this.options.metrics.failed('capacity');
      this.options.log.warn({ err: error, pool: policy.pool }, 'the machines of a pool can not be seen');
      return null;
    }
  }

  private async act(policy: PoolPolicy, { actions, saving, report }: Decision, until: number): Promise<void> {
    const { capacity, log, metrics } = this.options;
    const { pool } = policy;
    await capacity.hold(policy, saving).catch((error: unknown) => {
      metrics.failed('capacity');
      log.warn({ err: error, pool, machines: saving }, 'machines that save could not be held');
    });
    for (const action of actions) {
      if (performance.now() > until || this.stopping.signal.aborted) return;
      try {
        const done = await this.carryOut(policy, action);
        metrics.acted(pool, action, done ? undefined : 'busy');
        const { wanted_ranks, ranks } = report;
        log.info({ pool, ...action, wanted_ranks, ranks }, done ? 'done' : 'not done: there is work by now');
      } catch (error) {
        metrics.failed('capacity');
        log.warn({ err: error, pool, ...action }, 'not done yet');
      }
    }
  }

  /** False where a machine turned out to be in use. */
  private async carryOut(policy: PoolPolicy, action: Action): Promise<boolean> {
    const { store, capacity } = this.options;
    if (action.kind === 'want') {
      await capacity.want(policy, action.type, action.machines);
      return true;
    }
    const workers = await store.listWorkers(policy.pool);
    const there = workers.filter(({ machine }) => machine === action.machine);
    const came = action.reason === 'never_registered' || action.reason === 'agent_lost';
    if (came && there.length > 0) return false;
    const busy = await store.retireWorkers(there.map(({ id }) => id));
    if (busy.length > 0) return false;
    await capacity.retire(policy, action.machine);
    return true;
  }
}

/** What the holder of the office before remembered. */
function statesOf(memory: string): Record<string, PoolState> {
  return memory === '' ? {} : JSON.parse(memory);
}
