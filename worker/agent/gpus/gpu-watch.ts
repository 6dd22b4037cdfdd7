import type { Logger } from '../../../platform/logging/logging.js';
import { waitOrAbort } from '../../../platform/process/retry.js';
import type { MachineReport } from '../../tasks/inspect-machine.js';
import type { GpuPool } from './gpu-pool.js';

interface GpuWatchOptions {
  pools: readonly GpuPool[];
  inspect(signal: AbortSignal): Promise<MachineReport>;
  interval_ms: number;
  log: Logger;
}

/** Inspects the GPUs periodically, and at once when a fault is reported. */
export class GpuWatch {
  private readonly closed = new AbortController();
  private wake = new AbortController();
  private isRequested = false;
  private readonly loop: Promise<void>;

  constructor(private readonly options: GpuWatchOptions) {
    this.loop = this.watch();
  }

  /** Starts an inspection now. */
  inspectNow(): void {
    this.isRequested = true;
    this.wake.abort();
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.closed.abort();
    this.wake.abort();
    await this.loop;
  }

  private async watch(): Promise<void> {
    const { pools, inspect, interval_ms, log } = this.options;
    while (!this.closed.signal.aborted) {
      this.wake = new AbortController();
      if (!this.isRequested) await waitOrAbort(interval_ms, this.wake.signal);
      if (this.closed.signal.aborted) return;
      this.isRequested = false;
      await inspect(this.closed.signal).then(
        (report) => {
          for (const pool of pools) pool.observe(report.gpus);
        },
        (error: unknown) => {
          if (!this.closed.signal.aborted) log.error({ err: error }, 'GPU inspection failed');
        },
      );
    }
  }
}
