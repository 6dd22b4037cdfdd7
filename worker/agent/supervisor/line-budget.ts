/** Burst size in lines. */
export const BURST = 200;
/** Sustained rate in lines per second. */
export const PER_SECOND = 20;

/** Token bucket for the lines of a rank: it holds at most `BURST` lines and is refilled at `PER_SECOND`. */
export class LineBudget {
  private left = BURST;
  private at: number;

  /** Creates a full bucket. @param now milliseconds of a monotonic clock */
  constructor(private readonly now: () => number = () => performance.now()) {
    this.at = now();
  }

  /** Returns whether one more line may pass. */
  take(): boolean {
    const now = this.now();
    this.left = Math.min(BURST, this.left + ((now - this.at) * PER_SECOND) / 1000);
    this.at = now;
    if (this.left < 1) return false;
    this.left -= 1;
    return true;
  }
}
