import type { TraceHeaders } from '../../contracts/index.js';

/** Message to the queue: a worker has to begin attempt k of job j. */
export interface OutboxEntry {
  job_id: string;
  attempt: number;
  /** Worker that leads the job's ranks. */
  worker_id: string;
  /** Trace of the request that created the job; null when it has none. */
  trace: TraceHeaders | null;
}
