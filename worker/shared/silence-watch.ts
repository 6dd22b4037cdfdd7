/**
 * Limit before the first message of a child process: loading the program and the core takes long when many start at
 * once.
 */
export const CHILD_START_MS = 60_000;

/**
 * Detects that another process sends no messages. A process that was itself stopped for a while (a suspended machine, a
 * blocked loop) finds old timestamps when it continues, although messages may be unread: such a late tick restarts the
 * count.
 */
export class SilenceWatch {
  private readonly timer: NodeJS.Timeout;
  private readonly tick_ms: number;
  private allowed_ms: number;
  private last_heard = performance.now();
  private last_tick = performance.now();

  /**
   * Starts watching.
   * @param limit_ms time without a message that counts as hanging
   * @param first_ms limit before the first message: a process on a busy machine may start slowly
   */
  constructor(
    private readonly limit_ms: number,
    first_ms: number,
    private readonly onSilence: (silent_ms: number) => void,
  ) {
    this.allowed_ms = Math.max(first_ms, limit_ms);
    this.tick_ms = limit_ms / 8;
    this.timer = setInterval(() => this.check(), this.tick_ms);
  }

  heard(): void {
    this.last_heard = performance.now();
    this.allowed_ms = this.limit_ms;
  }

  /** Idempotent. */
  close(): void {
    clearInterval(this.timer);
  }

  private check(): void {
    const now = performance.now();
    const late_ms = now - this.last_tick - this.tick_ms;
    this.last_tick = now;
    if (late_ms > this.limit_ms / 2) {
      this.last_heard = now;
      return;
    }
    const silent_ms = now - this.last_heard;
    if (silent_ms < this.allowed_ms) return;
    this.close();
    this.onSilence(Math.round(silent_ms));
  }
}
