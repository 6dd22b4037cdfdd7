/**
 * The port of the scheduler: a pool as it is at one moment, and the decision that was made on it.
 *
 * A decision is applied whole or not at all. It is refused when a worker, a demand or an allocation has changed since the snapshot was
 * read; jobs that were queued and slots that became free meanwhile do not refuse it. So any number of programs may decide at once: one
 * is enough, and a second one does no harm.
 */
import type { Decision, Snapshot, WaitingJob } from '../../scheduler/types.js';
import type { Unsubscribe } from '../core/subscriptions.js';

export interface PoolSnapshot {
  /** Of the pool; a decision on the snapshot is applied while it is the same. */
  version: string;
  snapshot: Snapshot;
  /** Jobs that begin to wait later, at their `queued_at`, by the clock of `snapshot.now`. */
  delayed: WaitingJob[];
}

export interface ApplyOptions {
  /** An allocation that its worker does not claim in this time is taken back; the job keeps its turn. */
  claim_ms: number;
  /** Jobs whose record should say that they wait for slots (`waiting_capacity`). */
  waiting: readonly string[];
}

export interface Scheduling {
  /**
   * Reads a pool. What is due is carried out first: delayed jobs begin to wait, allocations that ended are taken back, workers that
   * were not heard of are forgotten.
   * @param grow_interval_ms a job that got slots grows only after so long
   */
  readSnapshot(pool: string, grow_interval_ms: number): Promise<PoolSnapshot>;
  /** @returns false when the pool has changed; then nothing was done, and it has to be decided anew */
  applyDecision(
    pool: string,
    version: string,
    decision: Omit<Decision, 'waiting'>,
    options: ApplyOptions,
  ): Promise<boolean>;
  /** Pools that have a worker or a job, or had one until just now. */
  schedulerPools(): Promise<string[]>;
  /** Calls back with each pool that has to be decided anew, and with null when messages may have been missed. */
  watchPools(onChange: (pool: string | null) => void): Promise<Unsubscribe>;
  /** Some of the workers that are gone and whose queues have to be removed; `forgetGoneWorkers` says that they were. */
  goneWorkers(): Promise<string[]>;
  forgetGoneWorkers(ids: readonly string[]): Promise<void>;
  /** An entry was put into the queue of a worker. One that is gone already is among `goneWorkers` then. */
  noteDelivery(workerId: string): Promise<void>;
}
