import { keepLimits } from '../../control/recovery/keep-limits.js';
import type { Logger } from '../../platform/logging/logging.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { Periodic } from '../../platform/process/periodic.js';
import type { JobStorePort } from '../../state/index.js';

const INTERVAL_MS = 2_000;

export interface WaitWatchOptions {
  store: Pick<JobStorePort, 'expireWaiting' | 'getJob'>;
  objects: ObjectStore;
  log: Logger;
}

/** Stops jobs that have waited longer than they may. It is the API that looks, for there may be no worker at all. */
export function watchWaits(options: WaitWatchOptions, interval_ms = INTERVAL_MS): Periodic {
  return new Periodic(
    () => look(options),
    interval_ms,
    (error) => options.log.warn({ err: error }, 'jobs that waited too long not looked for'),
  );
}

async function look({ store, objects }: WaitWatchOptions): Promise<void> {
  await keepLimits({ store, objects }, await store.expireWaiting());
}
