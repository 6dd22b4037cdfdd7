import type { FieldError, JobSpec, ResolvedJobSpec } from '../../contracts/index.js';
import { fieldError } from '../common/field-error.js';

/** Alternative schedules of checkpoints. */
const WHEN = ['every_steps', 'every_seconds', 'auto'] as const;

const BEST = '/checkpoint/keep/best';

export function resolveCheckpoint(given: JobSpec['checkpoint'] = {}): ResolvedJobSpec['checkpoint'] {
  const when = WHEN.some((name) => given[name] !== undefined) ? {} : { every_steps: 100 };
  return { ...when, on_busy: 'skip', ...given, keep: { last: 3, best: 0, ...given.keep } };
}

/** @param given the checkpoint section of the document, to find contradictory fields */
export function checkCheckpoint(given: JobSpec['checkpoint'] = {}, resolved: ResolvedJobSpec): FieldError[] {
  const [first, ...more] = WHEN.filter((name) => given[name] !== undefined);
  const errors = more.map((name) =>
    fieldError(`/checkpoint/${name}`, 'exactly_one_of', `set ${first} or ${name}, not both`),
  );
  return errors.length > 0 ? errors : checkBest(resolved);
}

/** Checks that checkpoints fall on evaluations: only those have a loss to compare. */
function checkBest({ checkpoint, train }: ResolvedJobSpec): FieldError[] {
  const { keep, every_steps } = checkpoint;
  if (keep.best === 0) return [];
  const { eval_every_steps } = train;
  if (eval_every_steps === undefined) {
    const message =
      'keep.best compares losses of evaluations, and there is no validation data: set data.validation_fraction, e.g. 0.05';
    return [fieldError(BEST, 'evaluation_missing', message, '0')];
  }
  // Early stopping saves each evaluation that improves.
  if (train.early_stopping !== undefined) return [];
  const isAligned =
    every_steps !== undefined &&
    (every_steps % eval_every_steps === 0 || eval_every_steps % every_steps === 0);
  if (isAligned) return [];
  const message =
    `keep.best compares checkpoints after whose steps the job is evaluated: set checkpoint.every_steps and train.eval_every_steps ` +
    `(${eval_every_steps} here) so that one is a multiple of the other, e.g. every_steps ${eval_every_steps}`;
  return [fieldError(BEST, 'checkpoints_not_evaluated', message, '0')];
}
