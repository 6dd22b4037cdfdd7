import { hostname } from 'node:os';
import { waitOrAbort } from '../../platform/process/retry.js';
import { totalMemory } from '../../platform/process/usable-memory.js';
import { PROGRAM_VERSION } from '../../platform/process/version.js';
import type { WorkerAnnouncement } from '../../state/index.js';
import { deferred } from '../shared/deferred.js';
import type { AgentDeps } from './attempt/context.js';

interface AnnouncerOptions
  extends Pick<
    AgentDeps,
    | 'store'
    | 'slots'
    | 'numerics'
    | 'gpus'
    | 'answer_gpus'
    | 'processes'
    | 'links'
    | 'machine'
    | 'topology'
    | 'drain'
    | 'timing'
    | 'log'
  > {
  pool: string;
  /** Memory of models that answer requests. */
  modelBytes(): number;
}

/** Delay after a failed announcement. */
const RETRY_MS = 500;

/** Announces a worker and its slots to the pool and renews the announcement before it expires. */
export class Announcer {
  /** Resolves with the first announcement that the job store accepts. */
  readonly announced: Promise<void>;

  private readonly first = deferred<void>();
  private readonly closed = new AbortController();
  private readonly loop: Promise<void>;
  private wake = new AbortController();
  private draining = false;

  constructor(
    private readonly options: AnnouncerOptions,
    private readonly workerId: string,
  ) {
    this.announced = this.first.promise;
    this.loop = this.announceForever();
  }

  /** Announces that this worker takes no new work. */
  drain(): void {
    this.draining = true;
    this.wake.abort();
  }

  /** Sends a new announcement at once. */
  refresh(): void {
    this.wake.abort();
  }

  /** Withdraws the worker's slots from the pool. Idempotent. */
  async close(): Promise<void> {
    this.closed.abort();
    this.wake.abort();
    await this.loop;
  }

  private async announceForever(): Promise<void> {
    const { store, timing, log } = this.options;
    let announced = false;
    while (!this.closed.signal.aborted) {
      this.wake = new AbortController();
      const { signal } = this.wake;
      announced = await store.announceWorker(this.announcement(), timing.lease_ms).then(
        () => true,
        (error: unknown) => {
          log.warn({ err: error }, 'worker not announced');
          return false;
        },
      );
      if (announced) this.first.resolve();
      await waitOrAbort(announced ? timing.lease_ms / 3 : RETRY_MS, signal);
    }
    // A worker that could not announce its withdrawal disappears when its last announcement expires.
    if (!announced) return;
    await store.withdrawWorker(this.workerId).catch((error: unknown) => {
      log.warn({ err: error }, 'worker not withdrawn');
    });
  }

  private announcement(): WorkerAnnouncement {
    const { pool, slots, numerics, gpus, answer_gpus, processes, links, drain, modelBytes } = this.options;
    const { workerId: id } = this;
    const { longestSaveMs } = drain;
    const { problem } = processes;
    return {
      id,
      pool,
      host: hostname(),
      pid: process.pid,
      slots: gpus?.slots ?? slots,
      version: PROGRAM_VERSION,
      address: links.address,
      machine: this.options.machine,
      topology: this.options.topology,
      draining: this.draining || problem !== null,
      problem,
      numerics,
      gpus: gpus?.gpus ?? [],
      answer_gpus: answer_gpus?.gpus ?? [],
      memory_bytes: Math.max(0, totalMemory() - modelBytes()),
      save_seconds: longestSaveMs === null ? null : longestSaveMs / 1000,
    };
  }
}
