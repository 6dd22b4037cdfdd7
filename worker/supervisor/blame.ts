import type { RankEnd } from './rank.js';

/**
 * A rank whose peer died reports a broken connection, often before the operating system reports the death itself. So a
 * communication error waits this long for the better explanation, anew with each further one.
 */
const CAUSE_GRACE_MS = 1000;

/** Which rank is to blame: one that ended, or one that lives and answers, for which all others waited in vain. */
export type Culprit = { rank: number; end: RankEnd } | { rank: number; stuck: { waiting: number } };

export interface BlameOptions {
  world_size: number;
  /** Steps that a rank said it has done; null before its first word. */
  stepOf(rank: number): number | null;
  /** Called once. */
  onFound(culprit: Culprit): void;
}

/** Tells the rank whose end is the cause from those whose end is only its consequence. */
export class Blame {
  private readonly symptoms = new Map<number, RankEnd>();
  private timer: NodeJS.Timeout | undefined;
  private closed = false;

  constructor(private readonly options: BlameOptions) {}

  /** A rank ended, and nobody had told it to. */
  ended(rank: number, end: RankEnd): void {
    if (this.closed) return;
    if (!isSymptom(end)) {
      this.found({ rank, end });
      return;
    }
    this.symptoms.set(rank, end);
    clearTimeout(this.timer);
    // Nobody is left whose end could explain these.
    if (this.symptoms.size === this.options.world_size) this.judge();
    else this.timer = setTimeout(() => this.judge(), CAUSE_GRACE_MS);
  }

  /** Idempotent; nothing is found any more. */
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

  /** The rank that was waited for: the others ran out of patience, it did not even get to the exchange. */
  private stuckRank(): number | null {
    const { world_size, stepOf } = this.options;
    if (![...this.symptoms.values()].some(isTimeout)) return null;
    const alive = Array.from({ length: world_size }, (_, rank) => rank).filter(
      (rank) => !this.symptoms.has(rank),
    );
    const lag = (rank: number) => stepOf(rank) ?? -1;
    return alive.sort((a, b) => lag(a) - lag(b) || a - b)[0] ?? null;
  }

  private found(culprit: Culprit): void {
    this.close();
    this.options.onFound(culprit);
  }
}

function isTimeout(end: RankEnd): boolean {
  return end.kind === 'failed' && end.error.code === 'comm_timeout';
}

function isSymptom(end: RankEnd): boolean {
  return isTimeout(end) || (end.kind === 'failed' && end.error.code === 'comm_failed');
}
