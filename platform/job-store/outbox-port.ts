/** What the queue is told: attempt k of job j is due in this pool, after a while. */
export interface OutboxEntry {
  job_id: string;
  attempt: number;
  pool: string;
  /** From its delivery on; an entry that is delivered late is due later. */
  delay_ms: number;
}

/**
 * Hands one entry to the queue. It may be called twice for the same entry (a relay that died between delivery
 * and acknowledgement), so it must name the queue job `${job_id}-${attempt}`, which makes the second add a
 * no-op.
 */
export type DeliverOutboxEntry = (entry: OutboxEntry) => Promise<void>;
