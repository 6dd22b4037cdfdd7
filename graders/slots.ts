/** Bounds evaluations at once; further ones wait in the order of their requests. */
export class Slots {
  private readonly waiting: (() => void)[] = [];
  private free: number;

  constructor(count: number) {
    this.free = count;
  }

  /** Runs a task in a slot. @throws errors of the task; the signal's reason while it waits */
  async run<T>(signal: AbortSignal, task: () => Promise<T>): Promise<T> {
    await this.take(signal);
    try {
      return await task();
    } finally {
      const next = this.waiting.shift();
      if (next === undefined) this.free += 1;
      else next();
    }
  }

  private async take(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.free > 0) {
      this.free -= 1;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const begin = () => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const leave = () => {
        this.waiting.splice(this.waiting.indexOf(begin), 1);
        reject(signal.reason);
      };
      this.waiting.push(begin);
      signal.addEventListener('abort', leave, { once: true });
    });
  }
}
