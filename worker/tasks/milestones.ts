/** Parts of the whole after which progress is told. */
const PARTS = 20;
/** Not more often than this: what is done at once needs no progress. */
const PERIOD_MS = 1000;

/** Which progress is worth an event: few of them, however large the work is and however fast it goes. */
export class Milestones {
  private part = 0;
  private told_at: number;

  constructor(
    private readonly total: number,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.told_at = now();
  }

  /** Whether to tell that `done` of the total is done. */
  reached(done: number): boolean {
    const part = Math.floor((PARTS * done) / this.total);
    if (part <= this.part || part === PARTS || this.now() - this.told_at < PERIOD_MS) return false;
    this.part = part;
    this.told_at = this.now();
    return true;
  }
}
