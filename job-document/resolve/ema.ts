import type { FieldError, JobSpec, ResolvedJobSpec } from '../../contracts/index.js';
import { defaultsOf } from '../common/defaults.js';
import { fieldError } from '../common/field-error.js';

type Train = NonNullable<JobSpec['train']>;
type Weights = ResolvedJobSpec['export']['weights'];

export function resolveEma(given: Train['ema']): Pick<ResolvedJobSpec['train'], 'ema'> {
  return given === undefined ? {} : { ema: { ...defaultsOf('EmaSpec'), ...given } };
}

/** Checks that a job has the weights that a field selects. @param pointer of the field */
export function checkWeights(
  { train }: Pick<ResolvedJobSpec, 'train'>,
  weights: Weights,
  pointer: string,
): FieldError[] {
  if (weights === 'trained' || train.ema !== undefined) return [];
  const message = 'the job has no average of its weights, which train.ema keeps';
  return [fieldError(pointer, 'ema_missing', message, 'trained')];
}
