import { ZerofleetError } from '../../contracts/index.js';
import { codeOf } from '../common/errors.js';
import type { StepResult } from '../native/adapter.js';

/** Current run of consecutive skipped steps, used to explain a divergence. */
export class SkippedRun {
  private count = 0;
  private scale: number | null = null;

  after({ finite, loss_scale }: StepResult): void {
    this.count = finite ? 0 : this.count + 1;
    this.scale = loss_scale;
  }

  /** Returns the error of the step after `done` finished ones; errors other than a divergence are unchanged. */
  explain(error: unknown, done: number): unknown {
    if (codeOf(error) !== 'diverged') return error;
    const scale = this.scale === null ? '' : `, the last ones with a loss scale of ${this.scale}`;
    const skipped = this.count + 1;
    return new ZerofleetError(
      'diverged',
      `step ${done + 1}: ${(error as Error).message}. ${skipped} ${skipped === 1 ? 'step was' : 'steps in a row were'} ` +
        `skipped because gradients were not finite${scale}. Lower train.optimizer.lr or warm up for longer; with fp16 ` +
        'use a dynamic loss scale with a lower min_scale, or train in bf16',
      { cause: error },
    );
  }
}
