import type { RankEnd } from './rank.js';

/**
 * Delay of a communication error. A rank whose peer died reports a broken connection, often before the operating system
 * reports the death. So such an error waits for a better explanation. Each further communication error restarts the
 * delay.
 */
const CAUSE_GRACE_MS = 1000;

/** Rank that caused the failure: one that ended, or a live one that all others waited for. */
export type FailedRank = { rank: number; end: RankEnd } | { rank: number; stuck: { waiting: number } };

interface RootCauseOptions {
  world_size: number;
  /** Steps that a rank reported as done; null before its first report. */
  stepOf(rank: number): number | null;
  /** Called once. */
  onFound(failed: FailedRank): void;
}

/** Finds the rank whose end is the root cause among those that ended as a consequence. */
export class RootCause {
  private readonly symptoms = new Map<number, RankEnd>();
  private timer: NodeJS.Timeout | undefined;
  private closed = false;

  constructor(private readonly options: RootCauseOptions) {}

  /** Records an unexpected end of a rank. */
  ended(rank: number, end: RankEnd): void {
    if (this.closed) return;
    if (!isSymptom(end)) {
      this.found({ rank, end });
      return;
    }
    this.symptoms.set(rank, end);
    clearTimeout(this.timer);
    // No other rank is left that could explain these.
    if (this.symptoms.size === this.options.world_size) this.judge();
    else this.timer = setTimeout(() => this.judge(), CAUSE_GRACE_MS);
  }

  /** Stops the search. Idempotent. */
  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
  }

  private judge(): void {
    const [first] = this.symptoms;
    if (!first) return;
    const stuck = this.stuckRank();
    if (stuck === null) this.found({ rank: first[0], end: first[1] });
    else this.found({ rank: stuck, stuck: { waiting: this.symptoms.size } });
  }

  /** Returns the rank that the others waited for until their timeout: the one that lags behind. */
  private stuckRank(): number | null {
    const { world_size, stepOf } = this.options;
    if (![...this.symptoms.values()].some(isTimeout)) return null;
    const alive = Array.from({ length: world_size }, (_, rank) => rank).filter(
      (rank) => !this.symptoms.has(rank),
    );
    const lag = (rank: number) => stepOf(rank) ?? -1;
    return alive.sort((a, b) => lag(a) - lag(b) || a - b)[0] ?? null;
  }

  private found(failed: FailedRank): void {
    this.close();
    this.options.onFound(failed);
  }
}

function isTimeout(end: RankEnd): boolean {
  return end.kind === 'failed' && end.error.code === 'comm_timeout';
}

function isSymptom(end: RankEnd): boolean {
  return isTimeout(end) || (end.kind === 'failed' && end.error.code === 'comm_failed');
}
