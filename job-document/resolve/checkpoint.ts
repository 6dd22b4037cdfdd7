import type { FieldError, JobSpec, ResolvedJobSpec } from '../../contracts/index.js';
import { defaultsOf } from '../common/defaults.js';
import { fieldError } from '../common/field-error.js';
import { checkMetric, EVALUATE } from './evaluation/evaluation.js';

/** Alternative schedules of checkpoints. */
const WHEN = ['every_steps', 'every_seconds', 'auto'] as const;

const BEST = '/checkpoint/keep/best';
const METRIC = '/checkpoint/keep/best_metric';

/** @param metric the default of `keep.best_metric` @param kept defaults of `keep` that differ from the schema's */
export function resolveCheckpoint(
  given: JobSpec['checkpoint'] = {},
  metric: string,
  kept: { last?: number } = {},
): ResolvedJobSpec['checkpoint'] {
  const when = WHEN.some((name) => given[name] !== undefined) ? {} : { every_steps: 100 };
  const { samples, ...rest } = given;
  const { best_metric = metric, ...keep } = { ...defaultsOf('KeepSpec'), ...kept, ...given.keep };
  return {
    ...when,
    ...defaultsOf('CheckpointSpec'),
    ...rest,
    keep: { ...keep, ...(keep.best > 0 && { best_metric }) },
    ...(samples && { samples: { ...defaultsOf('SamplesSpec'), ...samples } }),
  };
}

/** @param given the checkpoint section of the document, to find contradictory fields */
export function checkCheckpoint(given: JobSpec['checkpoint'] = {}, resolved: ResolvedJobSpec): FieldError[] {
  const [first, ...more] = WHEN.filter((name) => given[name] !== undefined);
  const errors = more.map((name) =>
    fieldError(`/checkpoint/${name}`, 'exactly_one_of', `set ${first} or ${name}, not both`),
  );
  return errors.length > 0 ? errors : checkBest(given.keep, resolved);
}

/** Checks that checkpoints fall on evaluations: only those have a loss to compare. */
function checkBest(
  given: NonNullable<JobSpec['checkpoint']>['keep'],
  resolved: ResolvedJobSpec,
): FieldError[] {
  const { checkpoint, train } = resolved;
  const { keep, every_steps } = checkpoint;
  if (keep.best_metric === undefined) {
    const message = 'best_metric has no effect without best: set keep.best, e.g. to 1';
    return given?.best_metric === undefined ? [] : [fieldError(METRIC, 'field_without_effect', message)];
  }
  if (train.evaluation === undefined) {
    const message = `keep.best compares losses of evaluations, and there is no data to evaluate on: ${EVALUATE}`;
    return [fieldError(BEST, 'evaluation_missing', message, '0')];
  }
  const unknown = checkMetric(METRIC, keep.best_metric, resolved);
  // Early stopping saves each evaluation that improves.
  if (unknown.length > 0 || train.early_stopping !== undefined) return unknown;
  const { every_steps: evalSteps } = train.evaluation;
  const isAligned =
    every_steps !== undefined && (every_steps % evalSteps === 0 || evalSteps % every_steps === 0);
  if (isAligned) return [];
  const message =
    `keep.best compares checkpoints after whose steps the job is evaluated: set checkpoint.every_steps and ` +
    `train.evaluation.every_steps (${evalSteps} here) so that one is a multiple of the other, e.g. every_steps ${evalSteps}`;
  return [fieldError(BEST, 'checkpoints_not_evaluated', message, '0')];
}
