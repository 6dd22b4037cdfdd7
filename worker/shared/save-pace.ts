import type { ResolvedJobSpec } from '../../contracts/index.js';

/**
 * Pace of checkpoints by time. Clocks differ between ranks and runs, so only one reads its clock: rank 0, or the agent
 * of a session. It distributes the result, in a step's exchange or a message, which makes it the same on all. A
 * checkpoint is a copy, so its time changes no bit of the training.
 */
export interface SavePace {
  isDue(): boolean;
  /** Records a save with the seconds for which the training stalled. */
  saved(stallSeconds: number): void;
  /** Begins the interval anew after a save that failed. */
  notSaved(): void;
}

interface PaceOptions {
  checkpoint: ResolvedJobSpec['checkpoint'];
  /** Failure rate of the job, as estimated so far. */
  failures_per_second: number;
  /** Seconds of a monotonic clock. */
  now(): number;
}

/** Assumed cost of a save in seconds before the first measurement. */
const FIRST_COST_SECONDS = 1;
/** Weight of the newest cost: a slower disk takes effect within a few saves. */
const NEWEST_WEIGHT = 0.25;
/** Bounds of the interval: shorter ones would only copy, and longer ones lose too much to one failure. */
const AUTO_MIN_SECONDS = 1;
const AUTO_MAX_SECONDS = 3600;

export function savePace({ checkpoint, failures_per_second, now }: PaceOptions): SavePace {
  if (checkpoint.every_seconds !== undefined) return new ClockPace(now, () => checkpoint.every_seconds ?? 0);
  if (checkpoint.auto !== true)
    return { isDue: () => false, saved: () => undefined, notSaved: () => undefined };
  return new ClockPace(now, (cost) => youngDaly(cost, failures_per_second));
}

/**
 * Returns the interval that minimizes the sum of checkpoint time and lost time: sqrt(2 · cost / rate). J. W. Young, A
 * first order approximation to the optimum checkpoint interval (1974); J. T. Daly (2006).
 */
export function youngDaly(costSeconds: number, failuresPerSecond: number): number {
  const seconds = Math.sqrt((2 * costSeconds) / failuresPerSecond);
  return Math.min(AUTO_MAX_SECONDS, Math.max(AUTO_MIN_SECONDS, seconds));
}

class ClockPace implements SavePace {
  private last: number;
  private cost: number | null = null;

  constructor(
    private readonly now: () => number,
    private readonly interval: (costSeconds: number) => number,
  ) {
    this.last = now();
  }

  isDue(): boolean {
    return this.now() - this.last >= this.interval(this.cost ?? FIRST_COST_SECONDS);
  }

  notSaved(): void {
    this.last = this.now();
  }

  saved(stallSeconds: number): void {
    this.last = this.now();
    const before = this.cost ?? stallSeconds;
    this.cost = before + (stallSeconds - before) * NEWEST_WEIGHT;
  }
}
