import type { TraceHeaders } from '../../contracts/index.js';

/** What the queue is told: attempt k of job j is due in this pool, after a while. */
export interface OutboxEntry {
  job_id: string;
  attempt: number;
  pool: string;
  /** From its delivery on; an entry that is delivered late is due later. */
  delay_ms: number;
  /** Of the request that created the job; null where it has none. */
  trace: TraceHeaders | null;
}
