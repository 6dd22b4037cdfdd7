/** What the ZeRO core of one rank keeps: native/zero's allocations, part by part. */
import type { Precision, ResolvedJobSpec } from '../index.js';
import { architectureOf } from '../model/index.js';
import { modelParams } from '../model-params.js';
import { leafCount } from '../resolve-spec/leaves.js';
import { splitFrozen } from '../resolve-spec/param-groups.js';
import { BLOCK_NUMEL, ShardLayout } from './shard-layout.js';

export interface ZeroMemory {
  /** All parameters, in the training precision. */
  params: number;
  /** Owned and trained: sums of gradients. */
  grad_shard: number;
  /** Owned: master weights, those of frozen parameters included. */
  master: number;
  /** Owned and trained: all other states of the optimizer. */
  moments: number;
  /** All trained parameters, where a lane has several leaves. */
  lane_accumulator: number;
  /** Buckets on their way out, and pieces that arrive. */
  staging: number;
}

const BYTES: Readonly<Record<Precision, number>> = { bf16: 2, fp16: 2, fp32: 4 };
/** Buckets in memory at once: one fills while the other travels. */
const BUCKETS_AT_ONCE = 2;

/** Bytes of one rank. */
export function zeroMemory(spec: ResolvedJobSpec, worldSize: number, rank: number): ZeroMemory {
  const { train, zero } = spec;
  const bucketBlocks = Math.floor(zero.bucket_bytes / (BLOCK_NUMEL * BYTES[zero.reduce_dtype]));
  const { trained, frozen } = splitFrozen(
    modelParams(architectureOf(spec.model.config)),
    train.optimizer.param_groups,
  );
  const layout = (params: readonly { numel: number }[]) =>
    new ShardLayout(
      params.map(({ numel }) => numel),
      worldSize,
      bucketBlocks,
    );
  const [trainedLayout, frozenLayout] = [layout(trained), layout(frozen)];
  const owned = trainedLayout.ownedBlocks(rank) * BLOCK_NUMEL;
  const ownedFrozen = frozenLayout.ownedBlocks(rank) * BLOCK_NUMEL;
  const held = (trainedLayout.numBlocks + frozenLayout.numBlocks) * BLOCK_NUMEL;
  return {
    params: held * BYTES[train.precision],
    grad_shard: owned * BYTES[zero.grad_accum_dtype],
    master: (owned + ownedFrozen) * BYTES[zero.master_dtype],
    moments: owned * 4 * numMoments(train.optimizer),
    lane_accumulator: addsLeaves(spec)
      ? trainedLayout.numBlocks * BLOCK_NUMEL * BYTES[zero.grad_accum_dtype]
      : 0,
    staging: staging(spec, trainedLayout, rank),
  };
}

/** States of an optimizer besides the master weights. */
function numMoments({ type, momentum }: ResolvedJobSpec['train']['optimizer']): number {
  switch (type) {
    case 'adamw':
    case 'adam':
    case 'lamb':
      return 2;
    case 'lion':
    case 'adagrad':
      return 1;
    case 'sgd':
      return momentum === 0 ? 0 : 1;
  }
}

/** Whether a rank sums the gradients of several leaves before it sends them. */
function addsLeaves({ train, zero }: ResolvedJobSpec): boolean {
  return zero.stage === 1 && (zero.lanes ?? 1) < leafCount(train);
}

function staging(spec: ResolvedJobSpec, layout: ShardLayout, rank: number): number {
  const { zero } = spec;
  const bucket = layout.maxBucketBlocks * BLOCK_NUMEL;
  const sent = Math.min(BUCKETS_AT_ONCE, Math.max(layout.numBuckets, 1)) * bucket * BYTES[zero.reduce_dtype];
  // Sums in 16 bits are widened on their way into a bucket.
  const widened = addsLeaves(spec) && zero.grad_accum_dtype !== 'fp32' ? bucket * 4 : 0;
  return sent + widened + received(spec, layout, rank);
}

function received({ train, zero }: ResolvedJobSpec, layout: ShardLayout, rank: number): number {
  const { worldSize } = layout;
  const bytes = BYTES[zero.reduce_dtype];
  if (zero.numerics === 'exact') {
    return worldSize === 1 ? 0 : worldSize * layout.maxOwnedInBucket(rank) * BLOCK_NUMEL * bytes;
  }
  // In the last round some ranks may have no lane; they take part with zeros.
  const lanes = zero.stage === 1 ? (zero.lanes ?? 1) : leafCount(train);
  const sendersOfLastRound = lanes - (Math.ceil(lanes / worldSize) - 1) * worldSize;
  return rank < sendersOfLastRound ? 0 : layout.maxBucketBlocks * BLOCK_NUMEL * bytes;
}
