import { type ResolvedJobSpec, ZerofleetError } from '../../contracts/index.js';
import { codeOf } from '../shared/errors.js';
import type { StepResult } from '../shared/native/adapter.js';

const ADVICE = 'Lower train.optimizer.lr or warm up for longer';

type Train = Pick<ResolvedJobSpec['train'], 'steps' | 'max_skipped_share'>;

/**
 * Fails a training that goes on without learning. The decision depends on numbers of the training alone, which are the
 * same on all ranks and after a resume.
 * @param isLast no step follows
 * @throws ZerofleetError `diverged`; `no_targets` if the step that goes too far has none
 */
export function requireProgress(
  { step, skipped_steps, loss, tokens }: Pick<StepResult, 'step' | 'skipped_steps' | 'loss' | 'tokens'>,
  { steps, max_skipped_share: share }: Train,
  isLast: boolean,
): void {
  if (share === null) return;
  // A step without targets is skipped, too: it has no gradients, and no loss.
  if (skipped_steps > share * (steps ?? step)) {
    const [code, reason, advice] =
      tokens > 0
        ? (['diverged', 'their gradients were not finite', ADVICE] as const)
        : ([
            'no_targets',
            'no token of theirs counts as a target',
            'Look at the preview of the data',
          ] as const);
    throw new ZerofleetError(
      code,
      `step ${step}: ${skipped_steps} of the run's ${steps ?? step} steps were skipped because ${reason}, ` +
        `more than train.max_skipped_share ${share} allows. ${advice}`,
    );
  }
  if (isLast && tokens > 0 && !Number.isFinite(loss))
    throw new ZerofleetError('diverged', `step ${step}, the last one: the loss is ${loss}. ${ADVICE}`);
}

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
        `skipped because gradients were not finite. ${ADVICE}; with fp16 ` +
        'use a dynamic loss scale with a lower min_scale, or train in bf16',
      { cause: error },
    );
  }
}
