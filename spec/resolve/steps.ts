import type { FieldError, JobSpec } from '../../contracts/index.js';
import { fieldError } from '../common/field-error.js';

type Train = NonNullable<JobSpec['train']>;

const AT = '/train/epochs';
/** Maximum of `train.steps` in the schema. */
const MAX_STEPS = 100_000_000;

/** Steps of a document; `error` if `epochs` cannot be resolved. */
export interface ResolvedSteps {
  steps: number;
  error: FieldError | null;
}

/**
 * Resolves `epochs` to the fewest steps that read every training sample so often.
 * @param samples number of training samples: sequences, or units of preferences; null if the dataset's record does not determine it
 */
export function resolveSteps(
  { steps, epochs }: Pick<Train, 'steps' | 'epochs'>,
  samples: number | null,
  global_batch_size: number,
): ResolvedSteps {
  // The document is refused without it; one step stands in so that the other rules can still be checked.
  if (epochs === undefined) return { steps: steps ?? 1, error: null };
  if (steps !== undefined)
    return { steps, error: fieldError(AT, 'exactly_one_of', 'set steps or epochs, not both') };
  // Rules about a training that is too short would mislead.
  const unresolved = (error: FieldError) => ({ steps: MAX_STEPS, error });
  if (samples === null) {
    const message =
      'the number of sequences is known in advance only for preferences, and for a dataset of format=text under the bytes tokenizer; lines ' +
      'of an object in a bucket are counted when it is a dataset: set steps instead; ' +
      'the event data.prepared of a job with this data has the number of sequences';
    return unresolved(fieldError(AT, 'sequences_unknown', message));
  }
  const needed = Math.max(1, Math.ceil((epochs * samples) / global_batch_size));
  if (needed <= MAX_STEPS) return { steps: needed, error: null };
  const message = `${epochs} epochs are ${needed} steps; the maximum is ${MAX_STEPS}`;
  const suggestion = Math.floor((MAX_STEPS * global_batch_size) / samples);
  return unresolved(fieldError(AT, 'out_of_range', message, String(suggestion)));
}
