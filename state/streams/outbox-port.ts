import type { TraceHeaders } from '../../contracts/index.js';

/** What the queue is told: a worker has to begin attempt k of job j. */
export interface OutboxEntry {
  job_id: string;
  attempt: number;
  /** The leader of its ranks. */
  worker_id: string;
  /** Of the request that created the job; null where it has none. */
  trace: TraceHeaders | null;
}
