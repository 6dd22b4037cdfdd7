/**
 * Sends heartbeats and records the longest gap between them, because the receiver cannot know the reason for a gap. A
 * process that was stopped finds out here when it continues.
 */
export class Heartbeat {
  private readonly timer: NodeJS.Timeout;
  private last = performance.now();
  private longest = 0;

  constructor(intervalMs: number, beat: () => void) {
    this.timer = setInterval(() => {
      this.note();
      beat();
    }, intervalMs);
  }

  /** Longest time without a heartbeat. */
  get longestGapMs(): number {
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
