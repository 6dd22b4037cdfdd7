/** Batch sizes. They are part of the arithmetic, so `auto` is resolved by the dataset's record at submission, never by a machine. */
import type { FieldError, JobSpec, ResolvedJobSpec } from '../../contracts/index.js';
import { fieldError } from '../common/field-error.js';
import { largestDivisor } from '../model/leaves.js';

type Train = NonNullable<JobSpec['train']>;
type BatchSizes = Pick<ResolvedJobSpec['train'], 'global_batch_size' | 'micro_batch_size'>;

const DEFAULTS = { global_batch_size: 16, micro_batch_size: 4 };
/** Part of the samples of an epoch that makes a step. */
const SHARE = 0.002;
/** Bounds of `auto`. Powers of two from here on are multiples of the default micro-batch. */
const [MIN, MAX] = [DEFAULTS.micro_batch_size, 256];

/** @param samples number of samples of an epoch, or an estimate; null if nothing is known about the data */
export function resolveBatch(given: Train | undefined, samples: number | null): BatchSizes {
  const { global_batch_size: global, micro_batch_size: micro } = { ...DEFAULTS, ...given };
  if (typeof global === 'number') return { global_batch_size: global, micro_batch_size: micro };
  const size = samples === null ? DEFAULTS.global_batch_size : autoSize(samples);
  return { global_batch_size: size, micro_batch_size: micro };
}

/** Returns the power of two nearest to SHARE of the samples, within the bounds. */
function autoSize(samples: number): number {
  const wanted = Math.min(Math.max(samples * SHARE, MIN), MAX);
  return 2 ** Math.round(Math.log2(wanted));
}

export function checkBatch({ train }: ResolvedJobSpec): FieldError[] {
  const { global_batch_size: global, micro_batch_size: micro } = train;
  if (global % micro === 0) return [];
  return [
    fieldError(
      '/train/micro_batch_size',
      'micro_batch_not_divisor',
      `micro_batch_size ${micro} does not divide global_batch_size ${global}`,
      String(largestDivisor(global, micro)),
    ),
  ];
}
