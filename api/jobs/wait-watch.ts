import { setTimeout as sleep } from 'node:timers/promises';
import type { JobStorePort } from '../../platform/job-store/port.js';
import type { Logger } from '../../platform/logging.js';
import type { ObjectStore } from '../../platform/object-store/port.js';
import { putDesired } from '../../platform/recovery/documents.js';

const INTERVAL_MS = 2_000;

export interface WaitWatchOptions {
  store: Pick<JobStorePort, 'expireWaiting' | 'getJob'>;
  objects: ObjectStore;
  log: Logger;
}

/** Stops jobs that have waited longer than they may. It is the API that looks, for there may be no worker at all. */
export class WaitWatch {
  private readonly stopping = new AbortController();
  private readonly loop: Promise<void>;

  constructor(
    private readonly options: WaitWatchOptions,
    private readonly interval_ms = INTERVAL_MS,
  ) {
    this.loop = this.run();
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.stopping.abort();
    await this.loop;
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      await this.look().catch((error: unknown) =>
        this.options.log.warn({ err: error }, 'jobs that waited too long not looked for'),
      );
      await sleep(this.interval_ms, undefined, { signal }).catch(() => undefined);
    }
  }

  private async look(): Promise<void> {
    const { store, objects } = this.options;
    for (const id of await store.expireWaiting()) {
      const job = await store.getJob(id);
      if (job?.reason !== 'budget_reached') continue;
      await putDesired(objects, job, job.state === 'cancelled' ? 'cancel' : 'pause', { reason: job.reason });
    }
  }
}
