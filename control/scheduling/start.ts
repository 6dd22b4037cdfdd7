import type { Logger } from '../../platform/logging/logging.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { type JobStore, startOutboxRelay } from '../../state/index.js';
import { keepLimits } from '../recovery/keep-limits.js';
import { Refusal } from './refusal.js';
import { SchedulerLoop, type SchedulerTiming } from './scheduler-loop.js';
import { WorkerQueues } from './worker-queues.js';

interface StartSchedulerOptions {
  redisUrl: string;
  store: JobStore;
  objects: ObjectStore;
  timing?: Partial<SchedulerTiming>;
  log: Logger;
}

export interface RunningScheduler {
  /** Idempotent. */
  close(): Promise<void>;
}

/**
 * Starts the scheduler and the relay that delivers its decisions to workers. Any number of programs may run
 * one. Redis may be away, also at the start.
 */
export function startScheduler({
  redisUrl,
  store,
  objects,
  timing = {},
  log,
}: StartSchedulerOptions): RunningScheduler {
  const queues = new WorkerQueues(redisUrl, log);
  const relay = startOutboxRelay({
    url: redisUrl,
    async deliver(entry) {
      await queues.deliver(entry);
      await store.noteDelivery(entry.worker_id);
    },
    log,
  });
  const refusal = new Refusal({ store, objects, log });
  const loop = new SchedulerLoop({
    store,
    removeQueue: (workerId) => queues.remove(workerId),
    onAbandoned: (jobIds) => keepLimits({ store, objects }, jobIds),
    onUnplaceable: (pool, jobIds) => refusal.refuse(pool, jobIds),
    timing,
    log,
  });
  return {
    async close() {
      await loop.close();
      await relay.stop();
      await queues.close();
    },
  };
}
