/**
 * Batch sizes. They are part of the arithmetic, so `auto` is resolved at submission and the document has the numbers.
 */
import type { FieldError, JobSpec, ResolvedJobSpec } from '../../../contracts/index.js';
import { defaultsOf } from '../../common/defaults.js';
import { fieldError } from '../../common/field-error.js';
import { largestDivisor } from '../../model/leaves.js';
import { MIN_MICRO_BATCH_OF_KTO } from '../objective.js';

type Train = NonNullable<JobSpec['train']>;
type BatchSizes = Pick<ResolvedJobSpec['train'], 'global_batch_size' | 'micro_batch_size'>;

export const DEFAULT_BATCH = {
  global_batch_size: defaultsOf('TrainSpec').global_batch_size,
  micro_batch_size: 4,
};
/** Part of the samples of an epoch that makes a step. */
const SHARE = 0.002;
/** Bounds of `auto`; a micro-batch of the smallest one has the two samples that `kto` needs. */
const [MIN, MAX] = [8, 256];
/** Least number of leaves of an `auto` batch, which as many ranks can share. */
const LEAVES = DEFAULT_BATCH.global_batch_size / DEFAULT_BATCH.micro_batch_size;
/**
 * A micro-batch of `auto` is the smallest one until `fitMicroBatch`: all rules hold for it that hold for any.
 * @param samples number of samples of an epoch, or an estimate; null if nothing is known about the data
 */
export function resolveBatch(given: Train | undefined, samples: number | null): BatchSizes {
  const { global_batch_size: size = DEFAULT_BATCH.global_batch_size, micro_batch_size: micro } = given ?? {};
  const globalBatchSize = typeof size === 'number' ? size : autoSize(samples);
  if (typeof micro === 'number') return { global_batch_size: globalBatchSize, micro_batch_size: micro };
  const least = given?.objective?.type === 'kto' ? MIN_MICRO_BATCH_OF_KTO : 1;
  const most = size === 'auto' ? largestMicroBatch(globalBatchSize) : globalBatchSize;
  const atMost = micro === 'auto' ? least : Math.min(DEFAULT_BATCH.micro_batch_size, most);
  return { global_batch_size: globalBatchSize, micro_batch_size: largestDivisor(globalBatchSize, atMost) };
}

/** Returns the power of two nearest to SHARE of the samples, within the bounds. */
function autoSize(samples: number | null): number {
  if (samples === null) return DEFAULT_BATCH.global_batch_size;
  const wanted = Math.min(Math.max(samples * SHARE, MIN), MAX);
  return 2 ** Math.round(Math.log2(wanted));
}

/** Returns the limit of a micro-batch that leaves a batch LEAVES leaves. */
export function largestMicroBatch(globalBatchSize: number): number {
  return Math.max(1, Math.floor(globalBatchSize / LEAVES));
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
