/** What the ZeRO core of one rank keeps: native/zero's allocations, part by part. */
import type { Precision, ResolvedJobSpec } from '../index.js';
import { architectureOf } from '../model/index.js';
import { type ModelParam, modelParams } from '../model-params.js';
import { leafCount } from '../resolve-spec/leaves.js';
import { momentsOf } from '../resolve-spec/optimizer.js';
import { splitFrozen } from '../resolve-spec/param-groups.js';
import { BLOCK_NUMEL, expertSet, ShardLayout, shardingOf } from '../shard-layout.js';
import type { EstimateDevice } from './sizes.js';

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

/**
 * Bytes that a rank on a GPU has in the memory of its host with `zero.offload: cpu`: what it owns, the pieces of gradients that are
 * added there, and two windows through which parameters go back.
 */
export function offloadedBytes(spec: ResolvedJobSpec, worldSize: number, rank: number): number {
  const { train, zero } = spec;
  if (zero.offload === 'none') return 0;
  const { grad_shard, master, moments } = zeroMemory(spec, worldSize, rank, 'cpu');
  const trained = partsOf(spec, worldSize, rank).filter(({ frozen }) => !frozen);
  const largest = (blocksOf: (part: Part) => number) => Math.max(...trained.map(blocksOf)) * BLOCK_NUMEL;
  const owned = largest(({ layout, shard }) => layout.maxOwnedInBucket(shard));
  const pieces = worldSize * owned * BYTES[zero.reduce_dtype];
  return grad_shard + master + moments + pieces + 2 * owned * BYTES[train.precision];
}

const BYTES: Readonly<Record<Precision, number>> = { bf16: 2, fp16: 2, fp32: 4 };
/** Buckets in memory at once: one fills while the other travels. */
const BUCKETS_AT_ONCE = 2;

/** Bytes of one rank, where it computes. With `offload` a GPU has no part of what is owned: it lies in the host's memory. */
export function zeroMemory(
  spec: ResolvedJobSpec,
  worldSize: number,
  rank: number,
  device: EstimateDevice,
): ZeroMemory {
  const { train, zero } = spec;
  const parts = partsOf(spec, worldSize, rank);
  const trained = parts.filter(({ frozen }) => !frozen);
  const blocks = (of: readonly Part[], count: (part: Part) => number) =>
    of.reduce((sum, part) => sum + count(part), 0) * BLOCK_NUMEL;
  const held = ({ layout }: Part) => layout.numBlocks;
  const isElsewhere = device === 'cuda' && zero.offload === 'cpu';
  const owned = ({ layout, shard }: Part) => (isElsewhere ? 0 : layout.ownedBlocks(shard));
  return {
    params: blocks(parts, held) * BYTES[train.precision],
    grad_shard: blocks(trained, owned) * BYTES[zero.grad_accum_dtype],
    master: blocks(parts, owned) * BYTES[zero.master_dtype],
    moments: blocks(trained, owned) * 4 * momentsOf(train.optimizer).length,
    lane_accumulator: addsLeaves(spec) ? blocks(trained, held) * BYTES[zero.grad_accum_dtype] : 0,
    staging: staging(spec, trained),
  };
}

/** Parameters that a rank holds, and which shard of them it owns. */
interface Part {
  frozen: boolean;
  layout: ShardLayout;
  shard: number;
}

/** What one rank holds, as native/zero/model_plan has it: with P sets of experts it is set `rank mod P` of them. */
function partsOf(spec: ResolvedJobSpec, worldSize: number, rank: number): Part[] {
  const { train, zero } = spec;
  const numSets = zero.expert_parallel_size;
  const { bucket_blocks } = shardingOf(zero);
  const architecture = architectureOf(spec.model.config);
  const setOf = ({ expert }: ModelParam) => expertSet(expert, architecture.num_experts, numSets);
  const { trained, frozen } = splitFrozen(modelParams(architecture), train.optimizer.param_groups);
  const part = (params: readonly ModelParam[], set: number | null): Part => {
    const stride = set === null ? 1 : numSets;
    const numels = params.filter((param) => setOf(param) === set).map(({ numel }) => numel);
    return {
      frozen: params === frozen,
      layout: new ShardLayout(numels, worldSize / stride, bucket_blocks),
      shard: Math.floor(rank / stride),
    };
  };
  const sets = numSets === 1 ? [null] : [null, rank % numSets];
  return [trained, frozen].flatMap((params) => sets.map((set) => part(params, set)));
}

/** Whether a rank sums the gradients of several leaves before it sends them. */
function addsLeaves({ train, zero }: ResolvedJobSpec): boolean {
  return zero.stage === 1 && (zero.lanes ?? 1) < leafCount(train);
}

function staging(spec: ResolvedJobSpec, parts: readonly Part[]): number {
  const { zero } = spec;
  const bucketOf = ({ layout }: Part) => layout.maxBucketBlocks * BLOCK_NUMEL;
  const numBuckets = parts.reduce((sum, { layout }) => sum + layout.numBuckets, 0);
  const sent =
    Math.min(BUCKETS_AT_ONCE, Math.max(numBuckets, 1)) *
    Math.max(...parts.map(bucketOf)) *
    BYTES[zero.reduce_dtype];
  return parts.reduce((sum, part) => {
    // Sums in 16 bits are widened on their way into a bucket.
    const widened = addsLeaves(spec) && zero.grad_accum_dtype !== 'fp32' ? bucketOf(part) * 4 : 0;
    return sum + widened + received(spec, part);
  }, sent);
}

function received({ zero }: ResolvedJobSpec, { layout, shard }: Part): number {
  const { worldSize } = layout;
  if (worldSize === 1) return 0;
  return worldSize * layout.maxOwnedInBucket(shard) * BLOCK_NUMEL * BYTES[zero.reduce_dtype];
}
