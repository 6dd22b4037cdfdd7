/**
 * Reconcile loop around the controller: observes, decides, stores its state, acts. Only the leader acts, and only while
 * it surely holds the lease. Actions are idempotent: sizes are absolute, and a machine is retired by its id. Before
 * that, the job store has closed the machine to new work and found it idle in one atomic step.
 */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PoolPolicy } from '../platform/config/autoscale-pools.js';
import type { Logger } from '../platform/logging/logging.js';
import type { JobStore } from '../state/index.js';
import type { CloudWatchPublisher } from './aws/cloudwatch.js';
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

/** Methods of the job store that the autoscaler uses. */
type ScalingStore = Pick<
  JobStore,
  | 'now'
  | 'acquireLeaderLease'
  | 'readDemand'
  | 'retireWorkers'
  | 'explainWait'
  | 'noteMachines'
  | 'vacateWorkers'
  | 'drainedMachines'
  | 'listWorkers'
>;

export interface AutoscalerOptions {
  store: ScalingStore;
  capacity: Capacity;
  /** Counts queued work other than training. */
  backgroundTasks: { count(pool: string): Promise<number> };
  pools: readonly PoolPolicy[];
  interval_ms: number;
  metrics: AutoscalerMetrics;
  publisher: Pick<CloudWatchPublisher, 'publish'> | null;
  log: Logger;
}

const LEASE_NAME = 'autoscaler';
/** Duration of the leader lease. A follower takes over when the leader has not renewed it for this long. */
const LEASE_MS = 30_000;
/** No action starts when the lease expires in less than this. */
const LEASE_MARGIN_MS = 5_000;
const UNHEALTHY_MS = 120_000;
/** Time that a reconciliation waits for the calls about one pool; less than the lease, which it must renew. */
const POOL_MS = 10_000;

interface Reconciliation {
  decisions: Map<PoolPolicy, Decision>;
  reports: ReadonlyMap<string, PoolReport>;
  /** Time of the monotonic clock until which no other autoscaler can lead. */
  until: number;
}

export class Autoscaler {
  readonly id = `${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`;
  private readonly stopping = new AbortController();
  private loop: Promise<void> | null = null;
  private reconciledAt = performance.now();
  private isLeader = false;
  private publishing: Promise<void> | null = null;
  /** Calls in progress, by pool. */
  private readonly busy = new Map<string, Promise<void>>();

  constructor(private readonly options: AutoscalerOptions) {}

  /** Reconciles now and then at every interval until `close`. */
  start(): void {
    this.loop ??= this.run();
  }

  /** Returns whether a reconciliation finished, as leader or follower, within `UNHEALTHY_MS`. */
  get isHealthy(): boolean {
    return performance.now() - this.reconciledAt < UNHEALTHY_MS;
  }

  /** Releases the lease; machines stay. Idempotent. */
  async close(): Promise<void> {
    this.stopping.abort();
    await this.loop;
    await Promise.all(this.busy.values());
    await this.publishing;
    if (!this.isLeader) return;
    this.isLeader = false;
    await this.options.store.acquireLeaderLease(LEASE_NAME, this.id, 0).catch((error: unknown) => {
      this.options.log.warn({ err: error }, 'could not release the leader lease; it expires by itself');
    });
  }

  /** Reconciles all pools once. Does not reject. */
  async reconcile(): Promise<void> {
    const { metrics, log } = this.options;
    const began = performance.now();
    try {
      const result = await this.decideAll();
      if (result) {
        await this.actOnAll(result);
        this.publish(result.reports);
      }
      this.reconciledAt = performance.now();
    } catch (error) {
      metrics.failed('job_store');
      log.warn({ err: error }, 'reconciliation failed: the job store is unavailable');
    }
    metrics.reconciled((performance.now() - began) / 1000);
  }

  private async run(): Promise<void> {
    const { interval_ms } = this.options;
    const { signal } = this.stopping;
    while (!signal.aborted) {
      await this.reconcile();
      await sleep(interval_ms, undefined, { signal }).catch(() => undefined);
    }
  }

  /**
   * Decides for every pool whose machines can be listed, and stores the new state. Returns null on a
   * follower.
   */
  private async decideAll(): Promise<Reconciliation | null> {
    const { store, pools, metrics } = this.options;
    const began = performance.now();
    const lease = await store.acquireLeaderLease(LEASE_NAME, this.id, LEASE_MS);
    this.setLeader(lease.leads);
    if (!lease.leads) return null;
    const states = statesOf(lease.state);
    // The next leader continues from the stored state, so the time is that of the job store, not of this
    // machine.
    const now = await store.now();
    const demands = await store.readDemand(pools.map(({ pool }) => pool));
    const drained = await store.drainedMachines();
    const decisions: Reconciliation['decisions'] = new Map();
    const views = await this.views();
    for (const policy of pools) {
      const demand = demands.find(({ name }) => name === policy.pool);
      const view = views.get(policy.pool);
      if (!demand || !view) continue;
      const backgroundTasks = await this.options.backgroundTasks.count(policy.pool);
      const snapshot = { ...demand, backgroundTasks, ...view, drained };
      decisions.set(policy, decide(policy, snapshot, states[policy.pool] ?? EMPTY_STATE, now));
    }
    for (const [{ pool }, { state }] of decisions) states[pool] = state;
    const renewed = await store.acquireLeaderLease(LEASE_NAME, this.id, LEASE_MS, JSON.stringify(states));
    this.setLeader(renewed.leads);
    if (!renewed.leads) return null;
    const reports = new Map(
      [...decisions].map(([{ pool }, { report }]): [string, PoolReport] => [pool, report]),
    );
    for (const [pool, report] of reports) metrics.decided(pool, report);
    metrics.showing(reports);
    return { decisions, reports, until: began + LEASE_MS - LEASE_MARGIN_MS };
  }

  /** Publishes in the background. While one publication is in progress, further reports are dropped. */
  private publish(reports: ReadonlyMap<string, PoolReport>): void {
    this.publishing ??= this.options.publisher
      ? this.options.publisher.publish(reports).finally(() => {
          this.publishing = null;
        })
      : null;
  }

  private setLeader(leads: boolean): void {
    if (leads !== this.isLeader)
      this.options.log.info({ id: this.id }, leads ? 'became leader' : 'became follower');
    this.isLeader = leads;
    this.options.metrics.leading(leads);
  }

  /**
   * Lists the machines of all pools. Leaves out a pool whose machines cannot be listed, or for which calls are still in
   * progress.
   */
  private async views(): Promise<Map<string, CapacityView>> {
    const { capacity, pools, metrics, log } = this.options;
    const views = new Map<string, CapacityView>();
    const failed = (error: unknown, pool?: string) => {
      metrics.failed('capacity');
      log.warn({ err: error, pool }, 'could not list the machines');
    };
    try {
      await capacity.refresh(pools);
    } catch (error) {
      failed(error);
      return views;
    }
    const free = pools.filter(({ pool }) => !this.busy.has(pool));
    await Promise.all(
      free.map((policy) =>
        this.inTime(policy.pool, async () => {
          const view = await capacity.view(policy).catch((error: unknown) => failed(error, policy.pool));
          if (view) views.set(policy.pool, view);
        }),
      ),
    );
    return new Map(views);
  }

  private async actOnAll({ decisions, until }: Reconciliation): Promise<void> {
    await Promise.all(
      [...decisions].map(([policy, decision]) =>
        this.inTime(policy.pool, () => this.act(policy, decision, until)),
      ),
    );
  }

  /**
   * Waits for the calls about one pool, at most `POOL_MS`, so that a call without an answer delays no other pool. The
   * pool is left out until its calls end.
   */
  private async inTime(pool: string, calls: () => Promise<void>): Promise<void> {
    const running = calls().finally(() => this.busy.delete(pool));
    this.busy.set(pool, running);
    const timer = new AbortController();
    await Promise.race([running, sleep(POOL_MS, undefined, { signal: timer.signal }).catch(() => undefined)]);
    timer.abort();
    if (this.busy.has(pool)) this.options.log.warn({ pool }, 'calls about the machines of a pool take long');
  }

  private async act(policy: PoolPolicy, decision: Decision, until: number): Promise<void> {
    const { capacity, log, metrics } = this.options;
    const { actions, saving, report, state } = decision;
    const { pool } = policy;
    await this.tell(pool, decision);
    await capacity.hold(policy, saving).catch((error: unknown) => {
      metrics.failed('capacity');
      log.warn(
        { err: error, pool, machines: saving },
        'could not extend the termination of machines that are saving',
      );
    });
    for (const action of actions) {
      if (performance.now() > until || this.stopping.signal.aborted) return;
      try {
        const done = await this.perform(policy, action, state);
        metrics.acted(pool, action, done ? undefined : 'busy');
        const { desired_ranks, provisioned_ranks } = report;
        log.info(
          { pool, ...action, desired_ranks, provisioned_ranks },
          done ? 'done' : 'not done: the pool has changed',
        );
      } catch (error) {
        metrics.failed('capacity');
        log.warn({ err: error, pool, ...action }, 'action failed; it will be retried');
      }
    }
  }

  /**
   * Tells people what machines there are, and jobs why they get none. A lost message is not repeated: it only informs.
   */
  private async tell(pool: string, { explain, report }: Decision): Promise<void> {
    const { store, metrics, log } = this.options;
    const types = Object.entries(report.machines).map(([type, counts]) => ({ type, ...counts }));
    try {
      await store.noteMachines(pool, { types, problems: [...report.problems], pods: [...report.pods] });
      for (const { job_id, reason, message } of explain) await store.explainWait(job_id, reason, message);
    } catch (error) {
      metrics.failed('job_store');
      log.warn({ err: error, pool }, 'could not tell what machines there are');
    }
  }

  /** Returns false if the machine turned out to be in use, or its jobs fit on no others any more. */
  private async perform(policy: PoolPolicy, action: Action, state: PoolState): Promise<boolean> {
    const { store, capacity } = this.options;
    if (action.kind === 'set_size') {
      await capacity.want(policy, action.type, action.machines, state.save_seconds ?? null);
      return true;
    }
    const workers = await store.listWorkers(policy.pool);
    const present = workers.filter(({ machine }) => machine === action.machine);
    const ids = present.map(({ id }) => id);
    if (action.kind === 'vacate') return store.vacateWorkers(policy.pool, ids);
    const isAgentMissing = action.reason === 'never_registered' || action.reason === 'agent_lost';
    if (isAgentMissing && present.length > 0) return false;
    const busy = await store.retireWorkers(ids, { busy: action.reason === 'budget' });
    if (busy.length > 0) return false;
    await capacity.retire(policy, action.machine);
    return true;
  }
}

/** Parses the states that the previous leader stored. */
function statesOf(stored: string): Record<string, PoolState> {
  return stored === '' ? {} : JSON.parse(stored);
}
