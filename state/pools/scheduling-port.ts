/**
 * The port of the scheduler: a snapshot of a pool, and the decision made on it.
 *
 * A decision is applied whole or not at all. It is refused when a worker, a demand or an allocation has changed since the snapshot was
 * read; newly queued jobs and newly free slots do not refuse it. So any number of programs may decide at once: one is enough, and a
 * second one does no harm.
 */
import type { Decision, Snapshot, WaitingJob } from '../../scheduler/types.js';
import type { Unsubscribe } from '../core/subscriptions.js';

export interface PoolSnapshot {
  /** Version of the pool; a decision on the snapshot is applied only at this version. */
  version: string;
  snapshot: Snapshot;
  /** Delayed jobs: they begin to wait at their `queued_at`, by the clock of `snapshot.now`. */
  delayed: WaitingJob[];
}

export interface ApplyOptions {
  /** Timeout of an allocation's claim. An unclaimed allocation is taken back; the job keeps its turn. */
  claim_ms: number;
  /** Jobs whose record should state that they wait for slots (`waiting_for_capacity`). */
  waiting: readonly string[];
}

export interface Scheduling {
  /**
   * Reads a pool, after everything that is due: delayed jobs begin to wait, ended allocations are taken back, expired workers are
   * removed.
   * @param grow_interval_ms minimum time between two allocations of a job that grows
   */
  readSnapshot(pool: string, grow_interval_ms: number): Promise<PoolSnapshot>;
  /** @returns false, without a change, when the pool has changed; the decision must be computed again */
  applyDecision(
    pool: string,
    version: string,
    decision: Omit<Decision, 'waiting'>,
    options: ApplyOptions,
  ): Promise<boolean>;
  /** Lists pools that have, or had until recently, a worker or a job. */
  schedulerPools(): Promise<string[]>;
  /** Calls back with each pool that needs a new decision, and with null when messages may have been missed. */
  watchPools(onChange: (pool: string | null) => void): Promise<Unsubscribe>;
  /** Lists some of the workers that are gone and whose queues must be removed; `forgetRemovedWorkers` confirms the removal. */
  removedWorkers(): Promise<string[]>;
  forgetRemovedWorkers(ids: readonly string[]): Promise<void>;
  /** Records that an entry was put into a worker's queue. A worker that is already gone is listed by `removedWorkers` again. */
  noteDelivery(workerId: string): Promise<void>;
}
