import { keepLimits } from '../../control/recovery/keep-limits.js';
import type { Logger } from '../../platform/logging/logging.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { Periodic } from '../../platform/process/periodic.js';
import type { JobStore } from '../../state/index.js';

const INTERVAL_MS = 2_000;

interface WaitWatchOptions {
  store: Pick<JobStore, 'expireWaiting' | 'getJob'>;
  objects: ObjectStore;
  log: Logger;
}

/** Stops jobs that exceed their waiting time. The API does this because there may be no worker. */
export function watchWaits(options: WaitWatchOptions, intervalMs = INTERVAL_MS): Periodic {
  return new Periodic(
    () => look(options),
    intervalMs,
    (error) => options.log.warn({ err: error }, 'look-up of jobs that waited too long failed'),
  );
}

async function look({ store, objects }: WaitWatchOptions): Promise<void> {
  await keepLimits({ store, objects }, await store.expireWaiting());
}
