/**
 * Limit before the first message of a child process: loading the program and the core takes long when many start at
 * once.
 */
export const CHILD_START_MS = 60_000;

/**
 * Detects that another process sends no messages. A process that was itself stopped for a while (a suspended machine, a
 * blocked loop) finds old timestamps when it continues, although messages may be unread. Such a late tick restarts the
 * count.
 */
export class SilenceWatch {
  private readonly timer: NodeJS.Timeout;
  private readonly tickMs: number;
  private allowedMs: number;
  private lastHeard = performance.now();
  private lastTick = performance.now();

  /**
   * Starts watching.
   * @param limitMs time without a message that counts as hanging
   * @param firstMs limit before the first message: a process on a busy machine may start slowly
   */
  constructor(
    private readonly limitMs: number,
    firstMs: number,
    private readonly onSilence: (silentMs: number) => void,
  ) {
    this.allowedMs = Math.max(firstMs, limitMs);
    this.tickMs = limitMs / 8;
    this.timer = setInterval(() => this.check(), this.tickMs);
  }

  heard(): void {
    this.lastHeard = performance.now();
    this.allowedMs = this.limitMs;
  }

  /** Idempotent. */
  close(): void {
    clearInterval(this.timer);
  }

  private check(): void {
    const now = performance.now();
    const lateMs = now - this.lastTick - this.tickMs;
    this.lastTick = now;
    if (lateMs > this.limitMs / 2) {
      this.lastHeard = now;
      return;
    }
    const silentMs = now - this.lastHeard;
    if (silentMs < this.allowedMs) return;
    this.close();
    this.onSilence(Math.round(silentMs));
  }
}
