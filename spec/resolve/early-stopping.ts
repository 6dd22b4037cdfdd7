import type { FieldError, JobSpec, ResolvedJobSpec } from '../../contracts/index.js';
import { fieldError } from '../common/field-error.js';

type Train = NonNullable<JobSpec['train']>;

const AT = '/train/early_stopping';

export function resolveEarlyStopping(
  given: Train['early_stopping'],
): Pick<ResolvedJobSpec['train'], 'early_stopping'> {
  if (given === undefined) return {};
  return { early_stopping: { metric: 'eval_loss', min_delta: 0, ...given } };
}

export function checkEarlyStopping({ train, export: exported }: ResolvedJobSpec): FieldError[] {
  const { early_stopping, eval_every_steps, steps } = train;
  if (early_stopping === undefined) {
    if (exported.checkpoint === 'last') return [];
    const message =
      'export.checkpoint best needs train.early_stopping, which saves the best evaluation; set it, or write last';
    return [fieldError('/export/checkpoint', 'early_stopping_missing', message, 'last')];
  }
  if (eval_every_steps === undefined) {
    const message =
      'early_stopping compares losses of evaluations, and there is no validation data: set data.validation_fraction, e.g. 0.05';
    return [fieldError(AT, 'evaluation_missing', message)];
  }
  // The last step is always evaluated.
  const evaluations = Math.ceil(steps / eval_every_steps);
  if (early_stopping.patience < evaluations) return [];
  const message =
    `patience ${early_stopping.patience} never ends a job with ${evaluations} evaluations: set a smaller patience, ` +
    `or evaluate more often (train.eval_every_steps, ${eval_every_steps} here)`;
  const suggestion = evaluations > 1 ? String(evaluations - 1) : undefined;
  return [fieldError(`${AT}/patience`, 'patience_longer_than_training', message, suggestion)];
}
