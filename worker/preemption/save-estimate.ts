import type { ShardMessage, SteppedMessage } from '../../contracts/rank-protocol.js';

/** A save beside other saves of a machine that leaves is slower than one in the background was. */
const MARGIN = 2;

/**
 * How long it would take until the state is saved: the step that is under way, and the bytes that the slowest rank owns over
 * the bandwidth at which it stored them before.
 */
export class SaveEstimate {
  private step_seconds = 0;
  private readonly write_seconds = new Map<number, number>();

  stepped({ seconds }: Pick<SteppedMessage, 'seconds'>): void {
    this.step_seconds = seconds.total;
  }

  /** A rank owns as many bytes in each save of a generation, so the time of the last one is bytes over bandwidth. */
  stored(rank: number, { cost }: Pick<ShardMessage, 'cost'>): void {
    this.write_seconds.set(rank, cost.write_seconds);
  }

  /** In ms; null when nothing was saved yet. */
  get save_ms(): number | null {
    if (this.write_seconds.size === 0) return null;
    return MARGIN * 1000 * (this.step_seconds + Math.max(...this.write_seconds.values()));
  }

  /** Whether it is worth a try. What was never measured is tried: the checkpoint before is not lost by that. */
  fits(left_ms: number | null): boolean {
    return left_ms === null || this.save_ms === null || this.save_ms <= left_ms;
  }
}
