/** Batch sizes. They are part of the arithmetic, so `auto` is resolved by the dataset's record at submission, never by a machine. */
import type { FieldError, JobSpec, ResolvedJobSpec } from '../../../contracts/index.js';
import { fieldError } from '../../common/field-error.js';
import { largestDivisor } from '../../model/leaves.js';

type Train = NonNullable<JobSpec['train']>;
type BatchSizes = Pick<ResolvedJobSpec['train'], 'global_batch_size' | 'micro_batch_size'>;

const DEFAULTS = { global_batch_size: 16, micro_batch_size: 4 };
/** Part of the samples of an epoch that makes a step. */
const SHARE = 0.002;
/** Bounds of `auto`; a micro-batch of the smallest one has the two samples that `kto` needs. */
const [MIN, MAX] = [8, 256];
/** Least number of leaves of an `auto` batch without a given micro-batch, which as many ranks can share. */
const LEAVES = DEFAULTS.global_batch_size / DEFAULTS.micro_batch_size;

/** @param samples number of samples of an epoch, or an estimate; null if nothing is known about the data */
export function resolveBatch(given: Train | undefined, samples: number | null): BatchSizes {
  const sizes = { ...DEFAULTS, ...given };
  if (typeof sizes.global_batch_size === 'number')
    return { global_batch_size: sizes.global_batch_size, micro_batch_size: sizes.micro_batch_size };
  const global_batch_size = samples === null ? DEFAULTS.global_batch_size : autoSize(samples);
  const micro_batch_size =
    given?.micro_batch_size ?? Math.min(DEFAULTS.micro_batch_size, global_batch_size / LEAVES);
  return { global_batch_size, micro_batch_size };
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
