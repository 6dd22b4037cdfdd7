import { setImmediate as settled } from 'node:timers/promises';
import type { Clock } from '../shared/clock.js';

interface Waiting {
  until: number;
  wake(): void;
}

/** Clock that advances only by `pass` and `jump`. */
export class FakeClock implements Clock {
  private time = 0;
  private readonly waiting = new Set<Waiting>();

  now(): number {
    return this.time;
  }

  async wait(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return;
    await new Promise<void>((resolve) => {
      const wake = () => {
        signal?.removeEventListener('abort', wake);
        this.waiting.delete(waiting);
        resolve();
      };
      const waiting = { until: this.time + ms, wake };
      this.waiting.add(waiting);
      signal?.addEventListener('abort', wake);
    });
  }

  /** Advances by `ms` and wakes each waiter at its time, one after the other. */
  async pass(ms: number): Promise<void> {
    const end = this.time + ms;
    for (;;) {
      await settled();
      const [next] = [...this.waiting].sort((a, b) => a.until - b.until);
      if (!next || next.until > end) break;
      this.time = Math.max(this.time, next.until);
      next.wake();
    }
    this.time = end;
  }

  /** Advances by `ms` without waking waiters, as while the process is stopped. */
  jump(ms: number): void {
    this.time += ms;
  }
}
