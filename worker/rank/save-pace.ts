import type { ResolvedJobSpec } from '../../contracts/index.js';

/**
 * When the clock, not the number of steps, says that a checkpoint is due. Clocks differ between ranks and runs, so rank 0 alone
 * asks it and brings the answer into a step's exchange, which makes it the same on all. A checkpoint is a copy: when it is taken
 * changes no bit of the training.
 */
export interface SavePace {
  isDue(): boolean;
  /** A checkpoint was begun; the training stood still for so long. */
  saved(stall_seconds: number): void;
}

export interface PaceOptions {
  checkpoint: ResolvedJobSpec['checkpoint'];
  /** Of the job, as measured so far. */
  failures_per_second: number;
  /** Seconds on a clock that never goes back. */
  now(): number;
}

/** What a save costs before one was measured, in seconds. */
const FIRST_COST_SECONDS = 1;
/** Of the costs, the newest counts for so much: a slower disk is noticed within a few saves. */
const NEWEST_WEIGHT = 0.25;
/** Shorter intervals would only copy, and longer ones lose more to one failure than a person forgives. */
const AUTO_MIN_SECONDS = 1;
const AUTO_MAX_SECONDS = 3600;

export function savePace({ checkpoint, failures_per_second, now }: PaceOptions): SavePace {
  if (checkpoint.every_seconds !== undefined) return new ClockPace(now, () => checkpoint.every_seconds ?? 0);
  if (checkpoint.auto !== true) return { isDue: () => false, saved: () => undefined };
  return new ClockPace(now, (cost) => youngDaly(cost, failures_per_second));
}

/**
 * The interval at which the time for checkpoints and the time that failures lose are least together: sqrt(2 · cost / rate).
 * J. W. Young, A first order approximation to the optimum checkpoint interval (1974); J. T. Daly (2006).
 */
export function youngDaly(cost_seconds: number, failures_per_second: number): number {
  const seconds = Math.sqrt((2 * cost_seconds) / failures_per_second);
  return Math.min(AUTO_MAX_SECONDS, Math.max(AUTO_MIN_SECONDS, seconds));
}

class ClockPace implements SavePace {
  private last: number;
  private cost: number | null = null;

  constructor(
    private readonly now: () => number,
    private readonly interval: (cost_seconds: number) => number,
  ) {
    this.last = now();
  }

  isDue(): boolean {
    return this.now() - this.last >= this.interval(this.cost ?? FIRST_COST_SECONDS);
  }

  saved(stall_seconds: number): void {
    this.last = this.now();
    const before = this.cost ?? stall_seconds;
    this.cost = before + (stall_seconds - before) * NEWEST_WEIGHT;
  }
}
