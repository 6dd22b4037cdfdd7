import type { PoolReport } from './controller/types.js';

/** Where numbers go beside Prometheus, which fetches them itself. */
export interface Publisher {
  /** Does not reject: numbers that can't be told are told the next time. */
  publish(reports: ReadonlyMap<string, PoolReport>): Promise<void>;
  /** Idempotent. */
  close(): Promise<void>;
}
