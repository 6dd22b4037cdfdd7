import type { FieldError, JobSpec, ResolvedJobSpec } from '../../../contracts/index.js';
import { defaultsOf } from '../../common/defaults.js';
import { fieldError } from '../../common/field-error.js';
import { checkMetric, EVALUATE } from './evaluation.js';

type Train = NonNullable<JobSpec['train']>;

const AT = '/train/early_stopping';

/** @param metric the default */
export function resolveEarlyStopping(
  given: Train['early_stopping'],
  metric: string,
): Pick<ResolvedJobSpec['train'], 'early_stopping'> {
  if (given === undefined) return {};
  return { early_stopping: { ...defaultsOf('EarlyStoppingSpec'), metric, ...given } };
}

export function checkEarlyStopping(resolved: ResolvedJobSpec): FieldError[] {
  const { train, export: exported } = resolved;
  const { early_stopping, evaluation } = train;
  if (early_stopping === undefined) {
    if (exported.checkpoint === 'last') return [];
    const message =
      'export.checkpoint best needs train.early_stopping, which saves the best evaluation; set it, or write last';
    return [fieldError('/export/checkpoint', 'early_stopping_missing', message, 'last')];
  }
  if (evaluation === undefined) {
    const message = `early_stopping compares losses of evaluations, and there is no data to evaluate on: ${EVALUATE}`;
    return [fieldError(AT, 'evaluation_missing', message)];
  }
  return checkMetric(`${AT}/metric`, early_stopping.metric, resolved);
}

/** Checks that the training has enough evaluations to end early. */
export function checkPatience({
  early_stopping,
  evaluation,
  steps = Infinity,
}: ResolvedJobSpec['train']): FieldError[] {
  if (early_stopping === undefined || evaluation === undefined) return [];
  const { patience } = early_stopping;
  const { every_steps } = evaluation;
  // The last step is always evaluated.
  const evaluations = Math.ceil(steps / every_steps);
  if (patience < evaluations) return [];
  const message =
    `patience ${patience} never ends a job with ${evaluations} evaluations: set a smaller patience, ` +
    `or evaluate more often (train.evaluation.every_steps, ${every_steps} here)`;
  const suggestion = evaluations > 1 ? String(evaluations - 1) : undefined;
  return [fieldError(`${AT}/patience`, 'patience_longer_than_training', message, suggestion)];
}
