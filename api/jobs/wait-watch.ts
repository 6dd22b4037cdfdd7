import type { JobStorePort } from '../../platform/job-store/port.js';
import type { Logger } from '../../platform/logging.js';
import type { ObjectStore } from '../../platform/object-store/port.js';
import { keepDesired } from '../../platform/recovery/documents.js';
import { Periodic } from '../periodic.js';

const INTERVAL_MS = 2_000;

export interface WaitWatchOptions {
  store: Pick<JobStorePort, 'expireWaiting' | 'requeueAbandoned' | 'getJob'>;
  objects: ObjectStore;
  log: Logger;
}

/** Longer than it takes the workers of a pool to notice by themselves that one of them is gone. */
const ABANDONED_MS = 120_000;

/**
 * Stops jobs that have waited longer than they may, and those whose worker is gone though they were to be stopped. It is the API that
 * looks, for there may be no worker at all.
 */
export function watchWaits(options: WaitWatchOptions, interval_ms = INTERVAL_MS): Periodic {
  return new Periodic(
    () => look(options),
    interval_ms,
    (error) => options.log.warn({ err: error }, 'jobs that waited too long not looked for'),
  );
}

async function look({ store, objects }: WaitWatchOptions): Promise<void> {
  for (const id of [...(await store.expireWaiting()), ...(await store.requeueAbandoned(ABANDONED_MS))]) {
    const job = await store.getJob(id);
    if (job?.reason !== 'budget_reached') continue;
    await keepDesired({ store, objects }, job);
  }
}
