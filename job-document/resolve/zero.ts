import type { Architecture } from '../../contracts/architecture.js';
import type { FieldError, JobSpec, ResolvedJobSpec } from '../../contracts/index.js';
import { BLOCK_NUMEL, BYTES_OF_ELEMENT, shardingOf } from '../../contracts/shard-layout.js';
import { defaultsOf } from '../common/defaults.js';
import { fieldError } from '../common/field-error.js';
import { trainedArchitecture } from '../model/adapters.js';
import { leafCount } from '../model/leaves.js';
import { numParams } from '../model/params.js';
import { checkExpertSets } from './expert-sets.js';

type ZeroSpec = NonNullable<JobSpec['zero']>;
type Precision = ResolvedJobSpec['train']['precision'];
type ResolvedZero = ResolvedJobSpec['zero'];

/**
 * Maximum of buckets. A rank that loads a checkpoint of other ranks sends the checksums of some ranges of each bucket
 * and state. The checksums take about 100 bytes each, in one message of at most 16 MiB.
 */
const MAX_BUCKETS = 16_384;

/** Bounds of the default of `bucket_bytes`, and the number of buckets of models between them. */
const [MIN_BUCKET_BYTES, MAX_BUCKET_BYTES, BUCKETS] = [1 << 24, 1 << 27, 16];

/**
 * @param resolved the trained model, `train.precision`, and `resources.ranks.max`, the minimum of lanes and their
 * default
 */
export function resolveZero(
  given: ZeroSpec = {},
  { model, precision, maxRanks }: { model: Architecture; precision: Precision; maxRanks: number },
): ResolvedZero {
  const { lanes = maxRanks, reduce_dtype = precision, ...rest } = given;
  const zero = {
    ...defaultsOf('ZeroSpec'),
    bucket_bytes: defaultBucketBytes(numParams(model) * BYTES_OF_ELEMENT[reduce_dtype]),
    reduce_dtype,
    ...rest,
  };
  return zero.stage === 1 ? { ...zero, lanes } : zero;
}

/**
 * Large pieces use the bandwidth of GPUs and networks; a few buckets of a model let exchanges run beside backward.
 * @param gradBytes bytes of all gradients
 */
function defaultBucketBytes(gradBytes: number): number {
  const bytes = 2 ** Math.ceil(Math.log2(gradBytes / BUCKETS));
  return Math.min(Math.max(bytes, MIN_BUCKET_BYTES), MAX_BUCKET_BYTES);
}

/** @param given the section of the document, to find fields without effect */
export function checkZero(given: ZeroSpec | undefined, spec: ResolvedJobSpec): FieldError[] {
  const { zero } = spec;
  const errors: FieldError[] = [];
  if (zero.stage === 2 && given?.lanes !== undefined) {
    errors.push(
      fieldError(
        '/zero/lanes',
        'field_without_effect',
        'lanes has no effect at stage 2, where every leaf is exchanged separately',
      ),
    );
  }
  if (zero.stage === 1) errors.push(...checkLanes(spec));
  errors.push(...checkLaneGroup(spec));
  errors.push(...checkBuckets(spec));
  if (zero.master_dtype === 'fp16') errors.push(...checkFp16Master(spec));
  errors.push(...checkExpertSets(spec));
  return errors;
}

function checkLanes({ zero, train, resources }: ResolvedJobSpec): FieldError[] {
  const { lanes = resources.ranks.max } = zero;
  const leaves = leafCount(train);
  // Reported by their own rules: a micro-batch that does not divide the batch, more ranks than leaves.
  if (train.global_batch_size % train.micro_batch_size !== 0 || resources.ranks.max > leaves) return [];
  if (lanes >= resources.ranks.max && lanes <= leaves) return [];
  return [
    fieldError(
      '/zero/lanes',
      'lanes_out_of_range',
      `lanes ${lanes} is not between resources.ranks.max ${resources.ranks.max} and the number of leaves ` +
        `${leaves} (global_batch_size / micro_batch_size)`,
      String(lanes > leaves ? leaves : resources.ranks.max),
    ),
  ];
}

function checkLaneGroup({ zero, train }: ResolvedJobSpec): FieldError[] {
  const lanes = zero.lanes ?? leafCount(train);
  // A batch without a whole number of leaves is reported by its own rule.
  if (zero.lane_group <= lanes || !Number.isInteger(lanes)) return [];
  return [
    fieldError(
      '/zero/lane_group',
      'lane_group_out_of_range',
      `a group of ${zero.lane_group} lanes is larger than the number of lanes of a step, ${lanes}`,
      String(lanes),
    ),
  ];
}

function checkBuckets(spec: ResolvedJobSpec): FieldError[] {
  const { zero } = spec;
  const blocks = Math.ceil(numParams(trainedArchitecture(spec)) / BLOCK_NUMEL);
  const { bucket_blocks } = shardingOf(zero);
  const buckets = Math.ceil(blocks / bucket_blocks);
  if (buckets <= MAX_BUCKETS) return [];
  const least = Math.ceil(blocks / MAX_BUCKETS) * BLOCK_NUMEL * BYTES_OF_ELEMENT[zero.reduce_dtype];
  return [
    fieldError(
      '/zero/bucket_bytes',
      'too_many_buckets',
      `the model has ${buckets} buckets of ${zero.bucket_bytes} bytes; the maximum is ${MAX_BUCKETS}`,
      String(least),
    ),
  ];
}

function checkFp16Master({ zero, train }: ResolvedJobSpec): FieldError[] {
  const missing = [
    ...(zero.offload === 'cpu' ? [] : ['zero.offload: cpu']),
    ...(train.precision === 'fp16' ? [] : ['train.precision: fp16']),
  ];
  if (missing.length === 0) return [];
  return [
    fieldError(
      '/zero/master_dtype',
      'fp16_master_unsupported',
      `master weights in fp16 need ${missing.join(' and ')}`,
      'fp32',
    ),
  ];
}
