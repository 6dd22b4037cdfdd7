import { FairQueue } from '../platform/threads/fair-queue.js';

interface Waiting {
  signal: AbortSignal;
  begin(): void;
}

/** Bounds evaluations at once. Owners take turns; one of them leaves a slot to the others. */
export class Slots {
  /** Slots in use. */
  taken = 0;
  private readonly waiting: FairQueue<Waiting>;

  constructor(private readonly count: number) {
    this.waiting = new FairQueue(count - 1);
  }

  /** Runs a task in a slot. @throws errors of the task; the signal's reason while it waits */
  async run<T>(owner: string, signal: AbortSignal, task: () => Promise<T>): Promise<T> {
    await this.take(owner, signal);
    try {
      return await task();
    } finally {
      this.taken -= 1;
      this.waiting.release(owner);
      this.dispatch();
    }
  }

  private take(owner: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const leave = () => reject(signal.reason);
      const begin = () => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      signal.addEventListener('abort', leave, { once: true });
      this.waiting.add(owner, { signal, begin });
      this.dispatch();
    });
  }

  private dispatch(): void {
    while (this.taken < this.count) {
      const next = this.waiting.take();
      if (next === null) return;
      if (next.item.signal.aborted) this.waiting.release(next.owner);
      else {
        this.taken += 1;
        next.item.begin();
      }
    }
  }
}
