import { ZerofleetError } from '../../contracts/index.js';
import { codeOf } from '../shared/errors.js';
import type { StepResult } from '../shared/native/adapter.js';

/** Current run of consecutive skipped steps, used to explain a divergence. */
export class SkippedRun {
  private count = 0;

  after({ finite }: Pick<StepResult, 'finite'>): void {
    this.count = finite ? 0 : this.count + 1;
  }

  /** Returns the error of the step after `done` finished ones; errors other than a divergence are unchanged. */
  explain(error: unknown, done: number): unknown {
    if (codeOf(error) !== 'diverged') return error;
    const skipped = this.count + 1;
    return new ZerofleetError(
      'diverged',
      `step ${done + 1}: ${(error as Error).message}. ${skipped} ${skipped === 1 ? 'step was' : 'steps in a row were'} ` +
        'skipped because gradients were not finite. Lower train.optimizer.lr or warm up for longer; with fp16 ' +
        'use a dynamic loss scale with a lower min_scale, or train in bf16',
      { cause: error },
    );
  }
}
