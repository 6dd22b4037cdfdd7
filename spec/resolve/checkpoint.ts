import type { FieldError, JobSpec, ResolvedJobSpec } from '../../contracts/index.js';
import { fieldError } from '../common/field-error.js';

/** Alternative schedules of checkpoints. */
const WHEN = ['every_steps', 'every_seconds', 'auto'] as const;

export function resolveCheckpoint(given: JobSpec['checkpoint'] = {}): ResolvedJobSpec['checkpoint'] {
  const when = WHEN.some((name) => given[name] !== undefined) ? {} : { every_steps: 100 };
  return { ...when, on_busy: 'skip', keep_last: 3, ...given };
}

export function checkCheckpoint(given: JobSpec['checkpoint'] = {}): FieldError[] {
  const [first, ...more] = WHEN.filter((name) => given[name] !== undefined);
  return more.map((name) =>
    fieldError(`/checkpoint/${name}`, 'exactly_one_of', `set ${first} or ${name}, not both`),
  );
}
