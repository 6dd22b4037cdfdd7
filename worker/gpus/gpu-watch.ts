import type { Logger } from '../../platform/logging/logging.js';
import { waitOrAbort } from '../../platform/process/retry.js';
import type { GpuPool } from './gpu-pool.js';
import type { MachineReport } from './look-at-machine.js';

export interface GpuWatchOptions {
  gpus: GpuPool;
  look(signal: AbortSignal): Promise<MachineReport>;
  interval_ms: number;
  log: Logger;
}

/** Looks after the GPUs from time to time, and at once when something is said to have gone wrong with one. */
export class GpuWatch {
  private readonly closed = new AbortController();
  private wake = new AbortController();
  private asked = false;
  private readonly loop: Promise<void>;

  constructor(private readonly options: GpuWatchOptions) {
    this.loop = this.watch();
  }

  /** Something may be wrong: looks now. */
  lookNow(): void {
    this.asked = true;
    this.wake.abort();
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.closed.abort();
    this.wake.abort();
    await this.loop;
  }

  private async watch(): Promise<void> {
    const { gpus, look, interval_ms, log } = this.options;
    while (!this.closed.signal.aborted) {
      this.wake = new AbortController();
      if (!this.asked) await waitOrAbort(interval_ms, this.wake.signal);
      if (this.closed.signal.aborted) return;
      this.asked = false;
      await look(this.closed.signal).then(
        (report) => gpus.observe(report.gpus),
        (error: unknown) => {
          if (!this.closed.signal.aborted) log.error({ err: error }, 'GPUs not looked at');
        },
      );
    }
  }
}
