/** Number of parts of the total between which progress is reported. */
const PARTS = 20;
/** Minimum interval of reports; short work needs none. */
const PERIOD_MS = 1000;

/** Selects the progress that is reported as an event: few reports, whatever the size and the speed of the work. */
export class Milestones {
  private part = 0;
  private reportedAt: number;

  constructor(
    private readonly total: number,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.reportedAt = now();
  }

  /** Returns whether to report that `done` of the total is done. */
  reached(done: number): boolean {
    const part = Math.floor((PARTS * done) / this.total);
    if (part <= this.part || part === PARTS || this.now() - this.reportedAt < PERIOD_MS) return false;
    this.part = part;
    this.reportedAt = this.now();
    return true;
  }
}
