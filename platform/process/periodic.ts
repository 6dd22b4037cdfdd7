import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Work that runs at once and then repeatedly, with a pause in between. A failure is reported and does not end
 * the repetition.
 */
export class Periodic {
  private readonly stopping = new AbortController();
  private readonly loop: Promise<void>;

  constructor(
    private readonly work: (signal: AbortSignal) => Promise<unknown>,
    private readonly intervalMs: number,
    private readonly onError: (error: unknown) => void,
  ) {
    this.loop = this.run();
  }

  /** Waits for the work in progress. Idempotent. */
  async close(): Promise<void> {
    this.stopping.abort();
    await this.loop;
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      await this.work(signal).catch(this.onError);
      await sleep(this.intervalMs, undefined, { signal }).catch(() => undefined);
    }
  }
}
