import { collectGarbage, DEFAULT_GRACE_MS } from '../control/garbage/collect.js';
import type { Logger } from '../platform/logging/logging.js';
import type { ObjectStore } from '../platform/object-store/common/port.js';
import { Periodic } from '../platform/process/periodic.js';
import type { JobStore } from '../state/index.js';

/** Interval between two collections by any servers. */
const COLLECTION_INTERVAL_MS = 3_600_000;

interface CollectorOptions {
  store: JobStore;
  objects: ObjectStore;
  log: Logger;
  interval_ms?: number;
  grace_ms?: number;
}

/** Collects garbage in the object store periodically. One of several servers does it per interval. */
export function collectPeriodically(options: CollectorOptions): Periodic {
  const { store, objects, log, interval_ms = COLLECTION_INTERVAL_MS, grace_ms = DEFAULT_GRACE_MS } = options;
  const work = async (signal: AbortSignal) => {
    if (!(await store.takeCollectionTurn(interval_ms))) return;
    const onFound = (found: object) => log.info(found, 'leftover removed');
    const { skipped, ...counts } = await collectGarbage({ store, objects, grace_ms, signal, onFound });
    if (skipped === null && counts.leftovers + counts.uploads > 0) log.info(counts, 'object store collected');
  };
  return new Periodic(work, interval_ms, (error) => log.warn({ err: error }, 'object store not collected'));
}
