/**
 * Scheduler loop of all pools, active while it leads. A pool is decided on every change, and periodically
 * because time passes: waiting jobs age, leases and allocations expire, delayed jobs become due. So a waiting
 * job costs Redis nothing.
 *
 * One program leads at a time, so that the work is done once. Correctness does not depend on it: a decision
 * is applied only to the version of the pool that it was made for (state/pools/scheduling.ts).
 */
import { randomUUID } from 'node:crypto';
import type { Logger } from '../../platform/logging/logging.js';
import { place } from '../../scheduler/place.js';
import type { Decision, WaitingJob } from '../../scheduler/types.js';
import type { JobAttempts, Scaling, Scheduling, Unsubscribe } from '../../state/index.js';

export interface SchedulerTiming {
  /** Interval of periodic decisions. */
  tick_ms: number;
  /** Timeout for a worker to claim its allocation. */
  claim_ms: number;
  /** Minimum time between two growths of a running job. */
  grow_interval_ms: number;
  /** Duration of the leader lease. */
  leader_ms: number;
}

const SCHEDULER_TIMING: SchedulerTiming = {
  tick_ms: 1_000,
  claim_ms: 15_000,
  grow_interval_ms: 60_000,
  leader_ms: 5_000,
};

export interface SchedulerOptions {
  store: Scheduling & Pick<JobAttempts, 'requeueAbandoned'> & Pick<Scaling, 'acquireLeaderLease'>;
  /** Removes the queue of a worker that is gone. */
  removeQueue(workerId: string): Promise<void>;
  /** Called with jobs whose worker was lost: they are queued again, or have ended. */
  onAbandoned(jobIds: readonly string[]): Promise<void>;
  /**
   * Called with jobs that no group of the pool's workers could run on an empty pool. All these workers have
   * GPUs.
   */
  onUnplaceable(pool: string, jobIds: readonly string[]): Promise<void>;
  timing?: Partial<SchedulerTiming>;
  log: Pick<Logger, 'info' | 'warn'>;
}

const LEASE_NAME = 'scheduler';
/** Attempts for a pool that changes during the decision. Afterwards it is decided with the next round. */
const MAX_TRIES = 5;

export class SchedulerLoop {
  private readonly timing: SchedulerTiming;
  private readonly holder = randomUUID();
  private readonly closing = new AbortController();
  /** Pools that have changed, and those of the periodic round that are still to be decided. Both take turns. */
  private readonly changed = new Set<string>();
  private readonly round = new Set<string>();
  private turnOfRound = false;
  /** True if a round of all pools has to begin. */
  private beginsRound = true;
  /** Due time of the next delayed job by pool, on this process' clock. */
  private readonly due = new Map<string, number>();
  /** Jobs by pool whose record says that they wait for slots. */
  private readonly reported = new Map<string, ReadonlySet<string>>();
  private wake: () => void = () => undefined;
  private leadsUntil = 0;
  private nextTick = 0;
  private readonly loop: Promise<void>;

  constructor(private readonly options: SchedulerOptions) {
    this.timing = { ...SCHEDULER_TIMING, ...options.timing };
    this.loop = this.run();
  }

  /** Waits for the decision in progress and releases the leader lease. Idempotent. */
  async close(): Promise<void> {
    this.closing.abort();
    this.wake();
    await this.loop;
  }

  private async run(): Promise<void> {
    const { store, log } = this.options;
    let unwatch: Unsubscribe | null = null;
    while (!this.closing.signal.aborted) {
      try {
        unwatch ??= await store.watchPools((pool) => this.onChange(pool));
        await this.step();
      } catch (error) {
        this.beginsRound = true;
        log.warn({ err: error }, 'scheduling failed');
        await this.pause(this.timing.tick_ms, false);
      }
    }
    await unwatch?.();
    if (this.leadsUntil > 0)
      await store.acquireLeaderLease(LEASE_NAME, this.holder, 0).catch(() => undefined);
  }

  private onChange(pool: string | null): void {
    if (pool === null) this.beginsRound = true;
    else this.changed.add(pool);
    this.wake();
  }

  /** Decides one pool. Many pools take longer than the leader lease, which is renewed in between. */
  private async step(): Promise<void> {
    if (!(await this.leads())) {
      // A new leader begins with all pools.
      this.changed.clear();
      this.round.clear();
      this.beginsRound = true;
      await this.pause(this.timing.tick_ms, false);
      return;
    }
    if (performance.now() >= this.nextTick) await this.tick();
    const pool = await this.nextPool();
    if (pool === undefined) {
      if (!this.beginsRound) await this.pause(this.untilNext(), true);
      return;
    }
    // A failing pool does not block others.
    await this.decide(pool).catch((error: unknown) => {
      this.due.set(pool, performance.now() + this.timing.tick_ms);
      this.options.log.warn({ err: error, pool }, 'scheduling of a pool failed');
    });
  }

  private async tick(): Promise<void> {
    const { store, log, onAbandoned } = this.options;
    this.nextTick = performance.now() + this.timing.tick_ms;
    this.beginsRound = true;
    const ids = await store.requeueAbandoned(0);
    if (ids.length > 0) {
      log.warn({ job_ids: ids }, 'workers of jobs were lost');
      await onAbandoned(ids);
    }
    await this.removeQueues();
  }

  /** Takes the next pool; undefined if none is left. A round begins after the one before it. */
  private async nextPool(): Promise<string | undefined> {
    if (this.changed.size === 0 && this.round.size === 0) {
      const now = performance.now();
      for (const [pool, at] of this.due) if (at <= now) this.changed.add(pool);
      if (this.beginsRound) {
        this.beginsRound = false;
        for (const pool of await this.options.store.schedulerPools()) this.round.add(pool);
      }
    }
    const [first, second] = this.turnOfRound ? [this.round, this.changed] : [this.changed, this.round];
    const from = first.size > 0 ? first : second;
    const [pool] = from;
    this.turnOfRound = from === this.changed;
    for (const pools of [first, second]) pools.delete(pool ?? '');
    return pool;
  }

  private async decide(pool: string): Promise<void> {
    const { store, onUnplaceable } = this.options;
    const { claim_ms, grow_interval_ms } = this.timing;
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const { version, snapshot, delayed } = await store.readSnapshot(pool, grow_interval_ms);
      this.due.delete(pool);
      if (delayed.length > 0) this.due.set(pool, performance.now() + firstDue(delayed) - snapshot.now);
      if (snapshot.waiting.length + snapshot.running.length === 0) {
        this.reported.delete(pool);
        return;
      }
      const decision = place(snapshot);
      const waiting = this.unreported(pool, decision);
      const idle = isEmpty(decision) && waiting.length === 0;
      if (!idle && !(await store.applyDecision(pool, version, decision, { claim_ms, waiting }))) continue;
      this.reported.set(pool, new Set(decision.waiting.keys()));
      const unplaceable = [...decision.waiting].flatMap(([id, reason]) => (reason === 'workers' ? [id] : []));
      // A pool with a CPU worker refuses no job.
      const onGpus =
        snapshot.workers.length > 0 && snapshot.workers.every(({ gpu_bytes }) => gpu_bytes !== null);
      if (unplaceable.length > 0 && onGpus) await onUnplaceable(pool, unplaceable);
      return;
    }
    this.changed.add(pool);
  }

  private unreported(pool: string, { waiting }: Decision): string[] {
    const reported = this.reported.get(pool);
    return [...waiting.keys()].filter((id) => !reported?.has(id));
  }

  private async removeQueues(): Promise<void> {
    const { store } = this.options;
    const removed = await this.withoutQueues(await store.removedWorkers());
    await store.forgetRemovedWorkers(removed);
    // An entry may have been delivered between the first removal and forgetting the worker.
    await this.withoutQueues(removed);
  }

  /** Removes the queues of workers. @returns the workers whose queues were removed */
  private async withoutQueues(ids: readonly string[]): Promise<string[]> {
    const { removeQueue, log } = this.options;
    const removed = await Promise.all(
      ids.map((id) =>
        removeQueue(id).then(
          () => [id],
          (error: unknown) => {
            log.warn(
              { err: error, worker: id },
              'could not remove the queue of a worker that is gone; it will be retried',
            );
            return [];
          },
        ),
      ),
    );
    return removed.flat();
  }

  /** Renews the leader lease in time. Returns whether this program leads. */
  private async leads(): Promise<boolean> {
    const { leader_ms } = this.timing;
    const now = performance.now();
    if (now < this.leadsUntil - (2 * leader_ms) / 3) return true;
    const { leads } = await this.options.store.acquireLeaderLease(LEASE_NAME, this.holder, leader_ms);
    if (leads && this.leadsUntil === 0) this.beginsRound = true;
    this.leadsUntil = leads ? now + leader_ms : 0;
    return leads;
  }

  private untilNext(): number {
    const next = Math.min(this.nextTick, ...this.due.values());
    return Math.max(0, next - performance.now());
  }

  /** @param interruptible true if a change of a pool ends the pause */
  private async pause(ms: number, interruptible: boolean): Promise<void> {
    const { signal } = this.closing;
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      const end = () => {
        clearTimeout(timer);
        resolve();
      };
      this.wake = () => {
        if (interruptible || signal.aborted) end();
      };
    });
    this.wake = () => undefined;
  }
}

function firstDue(delayed: readonly WaitingJob[]): number {
  return delayed.reduce((first, { queued_at }) => Math.min(first, queued_at), Number.POSITIVE_INFINITY);
}

function isEmpty({ starts, growth, requests, withdrawn }: Decision): boolean {
  return starts.length + growth.length + requests.length + withdrawn.length === 0;
}
