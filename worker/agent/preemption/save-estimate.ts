import type { ShardMessage, SteppedMessage } from '../../../contracts/rank-protocol.js';

/** A save that competes with other saves of a draining machine is slower than one in the background. */
const MARGIN = 2;

/**
 * Estimates the time until the state is saved: the step in progress plus the slowest rank's bytes divided by its
 * bandwidth in earlier saves.
 */
export class SaveEstimate {
  private stepSeconds = 0;
  private readonly writeSeconds = new Map<number, number>();

  stepped({ seconds }: Pick<SteppedMessage, 'seconds'>): void {
    this.stepSeconds = seconds.total;
  }

  /**
   * Records a write time. A rank's bytes are the same in each save of a generation, so the last time is bytes over
   * bandwidth.
   */
  stored(rank: number, { cost }: Pick<ShardMessage, 'cost'>): void {
    this.writeSeconds.set(rank, cost.write_seconds);
  }

  /** Estimate in ms; null before the first save. */
  get saveMs(): number | null {
    if (this.writeSeconds.size === 0) return null;
    return MARGIN * 1000 * (this.stepSeconds + Math.max(...this.writeSeconds.values()));
  }

  /**
   * Returns whether a save should be tried. Without a measurement it is, because the previous checkpoint stays valid.
   */
  fits(leftMs: number | null): boolean {
    return leftMs === null || this.saveMs === null || this.saveMs <= leftMs;
  }
}
