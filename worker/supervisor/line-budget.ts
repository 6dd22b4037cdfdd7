/** Lines that may come at once. */
export const BURST = 200;
/** Lines that may come in a second, on and on. */
export const PER_SECOND = 20;

/** How many lines a rank may still write: a full bucket holds `BURST`, and `PER_SECOND` drip into it. */
export class LineBudget {
  private left = BURST;
  private at: number;

  /** @param now milliseconds on a clock that never goes back */
  constructor(private readonly now: () => number = () => performance.now()) {
    this.at = now();
  }

  /** Whether one more line may pass. */
  take(): boolean {
    const now = this.now();
    this.left = Math.min(BURST, this.left + ((now - this.at) * PER_SECOND) / 1000);
    this.at = now;
    if (this.left < 1) return false;
    this.left -= 1;
    return true;
  }
}
