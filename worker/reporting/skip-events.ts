import type { SteppedMessage } from '../../contracts/rank-protocol.js';

export interface SkipEvent {
  type: 'step.skipped' | 'scale.lowered';
  data: Record<string, unknown>;
}

/** So many runs of skipped steps are told one by one; of those after them only the 32nd, 64th, … */
const TOLD_ONE_BY_ONE = 16;

/**
 * Says when steps are skipped because gradients were not finite, and where the loss scale is when they are over. A run of
 * skipped steps makes two events at most, and a training that overflows again and again does not fill its stream with them.
 */
export class SkipEvents {
  private runs = 0;
  private run: { first_step: number; scale: number } | null = null;

  after({ step, finite, loss, loss_scale, skipped_steps }: SteppedMessage): SkipEvent[] {
    if (!finite) {
      if (this.run) return [];
      this.run = { first_step: step, scale: loss_scale };
      this.runs += 1;
      return this.told([{ type: 'step.skipped', data: { step, loss, loss_scale, skipped_steps } }]);
    }
    const { run } = this;
    this.run = null;
    if (!run || loss_scale >= run.scale) return [];
    const data = { step, from: run.scale, to: loss_scale, skipped: step - run.first_step, skipped_steps };
    return this.told([{ type: 'scale.lowered', data }]);
  }

  private told(events: SkipEvent[]): SkipEvent[] {
    const isPowerOfTwo = (this.runs & (this.runs - 1)) === 0;
    return this.runs <= TOLD_ONE_BY_ONE || isPowerOfTwo ? events : [];
  }
}
