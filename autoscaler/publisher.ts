import type { PoolReport } from './controller/types.js';

/** Destination of metrics in addition to Prometheus, which scrapes them itself. */
export interface Publisher {
  /** Publishes the reports. Does not reject: after a failure the next reports are published. */
  publish(reports: ReadonlyMap<string, PoolReport>): Promise<void>;
  /** Idempotent. */
  close(): Promise<void>;
}
