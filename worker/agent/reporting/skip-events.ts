import type { SteppedMessage } from '../../../contracts/rank-protocol.js';

interface SkipEvent {
  type: 'step.skipped' | 'loss_scale.lowered';
  data: Record<string, unknown>;
}

/** Number of runs of skipped steps that are all reported; later only the 32nd, 64th, … are. */
const MAX_ALL_REPORTED = 16;

/**
 * Reports steps that are skipped because of non-finite gradients, and the loss scale after them. A run of skipped steps
 * makes at most two events, and a training that overflows repeatedly does not flood its stream.
 */
export class SkipEvents {
  private runs = 0;
  private run: { first_step: number; scale: number } | null = null;

  after({ step, finite, loss, loss_scale, skipped_steps }: SteppedMessage): SkipEvent[] {
    if (!finite) {
      if (this.run) return [];
      this.run = { first_step: step, scale: loss_scale };
      this.runs += 1;
      return this.limit([{ type: 'step.skipped', data: { step, loss, loss_scale, skipped_steps } }]);
    }
    const { run } = this;
    this.run = null;
    if (!run || loss_scale >= run.scale) return [];
    const data = { step, from: run.scale, to: loss_scale, skipped: step - run.first_step, skipped_steps };
    return this.limit([{ type: 'loss_scale.lowered', data }]);
  }

  private limit(events: SkipEvent[]): SkipEvent[] {
    const isPowerOfTwo = (this.runs & (this.runs - 1)) === 0;
    return this.runs <= MAX_ALL_REPORTED || isPowerOfTwo ? events : [];
  }
}
