/**
 * Says regularly that this process lives. The other side can't be told why it heard nothing for a while, so this side
 * remembers it: a process that was stopped finds out when it goes on.
 */
export class Pulse {
  private readonly timer: NodeJS.Timeout;
  private last = performance.now();
  private longest = 0;

  constructor(interval_ms: number, beat: () => void) {
    this.timer = setInterval(() => {
      this.note();
      beat();
    }, interval_ms);
  }

  /** The longest time in which nothing was said. */
  get longest_silence_ms(): number {
    this.note();
    return Math.round(this.longest);
  }

  /** Idempotent. */
  close(): void {
    clearInterval(this.timer);
  }

  private note(): void {
    const now = performance.now();
    this.longest = Math.max(this.longest, now - this.last);
    this.last = now;
  }
}
