import { hostname, totalmem } from 'node:os';
import { waitOrAbort } from '../../platform/process/retry.js';
import { PROGRAM_VERSION } from '../../platform/process/version.js';
import type { WorkerAnnouncement } from '../../state/index.js';
import type { AgentDeps } from '../attempt/context.js';
import { deferred } from '../common/deferred.js';

export interface AnnouncerOptions
  extends Pick<
    AgentDeps,
    'store' | 'slots' | 'numerics' | 'gpus' | 'processes' | 'links' | 'machine' | 'timing' | 'log'
  > {
  pool: string;
}

/** Before an announcement is tried again that the job store did not take. */
const RETRY_MS = 500;

/** Keeps a worker and its slots known to the pool, for as long as a lease lasts without another word. */
export class Announcer {
  /** Resolves with the first announcement that the job store took. */
  readonly announced: Promise<void>;

  private readonly first = deferred<void>();
  private readonly closed = new AbortController();
  private readonly loop: Promise<void>;
  private wake = new AbortController();
  private draining = false;

  constructor(
    private readonly options: AnnouncerOptions,
    private readonly worker_id: string,
  ) {
    this.announced = this.first.promise;
    this.loop = this.announceForever();
  }

  /** From now on nothing new begins on this worker. */
  drain(): void {
    this.draining = true;
    this.wake.abort();
  }

  /** Something of what is announced has changed. */
  refresh(): void {
    this.wake.abort();
  }

  /** The worker's slots are gone from the pool. Idempotent. */
  async close(): Promise<void> {
    this.closed.abort();
    this.wake.abort();
    await this.loop;
  }

  private async announceForever(): Promise<void> {
    const { store, timing, log } = this.options;
    let told = false;
    while (!this.closed.signal.aborted) {
      this.wake = new AbortController();
      const { signal } = this.wake;
      told = await store.announceWorker(this.announcement(), timing.lease_ms).then(
        () => true,
        (error: unknown) => {
          log.warn({ err: error }, 'worker not announced yet');
          return false;
        },
      );
      if (told) this.first.resolve();
      await waitOrAbort(told ? timing.lease_ms / 3 : RETRY_MS, signal);
    }
    // What can't be said is found out by the others when the announcement is over.
    if (!told) return;
    await store.withdrawWorker(this.worker_id).catch((error: unknown) => {
      log.warn({ err: error }, 'worker not withdrawn');
    });
  }

  private announcement(): WorkerAnnouncement {
    const { pool, slots, numerics, gpus, processes, links, machine } = this.options;
    const { worker_id: id } = this;
    const { problem } = processes;
    return {
      id,
      pool,
      host: hostname(),
      pid: process.pid,
      slots: gpus?.slots ?? slots,
      version: PROGRAM_VERSION,
      address: links.address,
      machine,
      draining: this.draining || problem !== null,
      problem,
      numerics,
      gpus: gpus?.gpus ?? [],
      memory_bytes: usableMemory(),
    };
  }
}

/** Bytes of this machine's memory, or of what a control group leaves of it. */
function usableMemory(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
