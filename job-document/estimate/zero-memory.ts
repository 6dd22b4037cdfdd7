/** Memory of one rank's ZeRO core: native/zero's allocations, part by part. */

import type { ResolvedJobSpec } from '../../contracts/index.js';
import {
  BLOCK_NUMEL,
  BYTES_OF_ELEMENT,
  blocksOf,
  expertSet,
  ShardLayout,
  shardingOf,
} from '../../contracts/shard-layout.js';
import { addsLeaves, leafCount } from '../model/leaves.js';
import { countOf } from '../model/params.js';
import { extraStatesOf } from '../resolve/optimizer.js';
import { type SplitKind, splitParams } from '../resolve/param-groups.js';
import type { EstimateDevice } from './sizes.js';

export interface ZeroMemory {
  /** Parameters in the rank's own memory, in the training precision or quantized. */
  params: number;
  /** Frozen parameters of which the CPU ranks of a host have one copy together; 0 where a rank shares with none. */
  shared_params: number;
  /** Gradient sums of owned, trained parameters. */
  grad_shard: number;
  /** Master weights of owned, trained parameters; that of a frozen one is the parameter itself. */
  master: number;
  /** Other optimizer states of owned, trained parameters. */
  moments: number;
  /** All trained parameters, if a lane has several leaves. */
  lane_accumulator: number;
  /** Outgoing buckets and received pieces. */
  staging: number;
}

/** Bytes of the two windows through which a GPU's gradients come to host memory, like native/zero/offload. */
const PIECE_WINDOWS_BYTES = 1 << 24;

/**
 * Returns the host memory of a GPU rank with `zero.offload: cpu`: its owned state, and the windows through which
 * gradient pieces come and parameters return.
 */
export function offloadedBytes(spec: ResolvedJobSpec, worldSize: number, rank: number): number {
  const { train, zero } = spec;
  if (zero.offload === 'none') return 0;
  const { grad_shard, master, moments } = zeroMemory(spec, worldSize, rank, 'cpu');
  const trained = partsOf(spec, worldSize, rank).filter(({ frozen }) => !frozen);
  const largest = (count: (part: Part) => number) => Math.max(...trained.map(count)) * BLOCK_NUMEL;
  const owned = largest(({ layout, shard }) => layout.maxOwnedInBucket(shard));
  const terms = Math.max(...trained.map((part) => termsOf(zero, part)));
  const pieces = Math.min(terms * owned * BYTES_OF_ELEMENT[zero.reduce_dtype], PIECE_WINDOWS_BYTES);
  return grad_shard + master + moments + pieces + 2 * owned * BYTES_OF_ELEMENT[train.precision];
}

/** Buckets in memory at once: one fills during the transfer of the other. */
const BUCKETS_AT_ONCE = 2;

/**
 * Returns the bytes of one rank on its device. With `offload` the owned state of a GPU rank is in host
 * memory.
 */
export function zeroMemory(
  spec: ResolvedJobSpec,
  worldSize: number,
  rank: number,
  device: EstimateDevice,
): ZeroMemory {
  const { train, zero } = spec;
  const parts = partsOf(spec, worldSize, rank);
  const trained = parts.filter(({ frozen }) => !frozen);
  const blocks = (parts: readonly Part[], count: (part: Part) => number) =>
    parts.reduce((sum, part) => sum + count(part), 0) * BLOCK_NUMEL;
  const held = ({ layout }: Part) => layout.numBlocks;
  const isElsewhere = device === 'cuda' && zero.offload === 'cpu';
  const owned = ({ layout, shard }: Part) => (isElsewhere ? 0 : layout.ownedBlocks(shard));
  const numSets = zero.expert_parallel_size;
  const isShared = (ranks: number) => device === 'cpu' && ranks > 1;
  const paramBytes = (shared: boolean) => {
    const inBlocks = parts.filter(({ frozen, layout }) => (frozen && isShared(layout.worldSize)) === shared);
    const { byAll, ofSet } = quantizedBytes(spec, rank);
    return (
      blocks(inBlocks, held) * BYTES_OF_ELEMENT[train.precision] +
      (isShared(worldSize) === shared ? byAll : 0) +
      (isShared(worldSize / numSets) === shared ? ofSet : 0)
    );
  };
  return {
    params: paramBytes(false),
    shared_params: paramBytes(true),
    grad_shard: blocks(trained, owned) * BYTES_OF_ELEMENT[zero.grad_accum_dtype],
    master: blocks(trained, owned) * BYTES_OF_ELEMENT[zero.master_dtype],
    moments: blocks(trained, owned) * 4 * extraStatesOf(train).length,
    lane_accumulator: addsLeaves(spec) ? blocks(trained, held) * BYTES_OF_ELEMENT[zero.grad_accum_dtype] : 0,
    staging: staging(spec, trained) + (isElsewhere ? sumsInTransit(spec, trained) : 0),
  };
}

/** Parameters that a rank holds, and the shard of them that it owns. */
interface Part {
  frozen: boolean;
  layout: ShardLayout;
  shard: number;
  /** Lanes of a step. */
  numLanes: number;
}

/**
 * Returns the parts of one rank like native/zero/step/model_plan: with P expert sets it holds set `rank mod P`.
 */
function partsOf(spec: ResolvedJobSpec, worldSize: number, rank: number): Part[] {
  const { zero } = spec;
  const numSets = zero.expert_parallel_size;
  const { bucket_blocks } = shardingOf(zero);
  const { trained, frozen } = heldBlocks(spec);
  const part = (blocks: HeldBlocks, set: number | null): Part => {
    const stride = set === null ? 1 : numSets;
    const numBlocks = (set === null ? blocks.byAll : blocks.bySet[set]) as number;
    return {
      frozen: blocks === frozen,
      layout: new ShardLayout(numBlocks, worldSize / stride, bucket_blocks),
      shard: Math.floor(rank / stride),
      numLanes: (zero.lanes ?? leafCount(spec.train)) / stride,
    };
  };
  const sets = numSets === 1 ? [null] : [null, rank % numSets];
  return [trained, frozen].flatMap((blocks) => sets.map((set) => part(blocks, set)));
}

/** Numbers of parameter blocks. */
interface HeldBlocks {
  /** Blocks held by all ranks. */
  byAll: number;
  /** Blocks of each expert set, if there are several. */
  bySet: number[];
}

interface Held {
  trained: HeldBlocks;
  frozen: HeldBlocks;
  /** Matrices that have bytes instead of blocks. */
  quantized: HeldBlocks;
}

/** Cache of the last document's blocks, which are requested for each rank of each world. */
const lastHeld = new WeakMap<readonly SplitKind[], { numSets: number; held: Held }>();

function heldBlocks({ model, train, zero }: ResolvedJobSpec): Held {
  const numSets = zero.expert_parallel_size;
  const kinds = splitParams({ model, train });
  const last = lastHeld.get(kinds);
  if (last?.numSets === numSets) return last.held;
  const held = countBlocks(kinds, numSets);
  lastHeld.set(kinds, { numSets, held });
  return held;
}

function countBlocks(kinds: readonly SplitKind[], numSets: number): Held {
  const none = (): HeldBlocks => ({ byAll: 0, bySet: new Array<number>(numSets).fill(0) });
  const [trained, rest, quantized] = [none(), none(), none()];
  for (const { kind, numFrozen, frozenByExpert } of kinds) {
    const [frozen, blocks] =
      kind.quantization === null
        ? [rest, blocksOf(kind.numel)]
        : [quantized, bytesOf(kind.quantization, kind)];
    if (kind.experts === null || numSets === 1) {
      frozen.byAll += numFrozen * blocks;
      trained.byAll += (countOf(kind) - numFrozen) * blocks;
      continue;
    }
    for (let expert = 0; expert < kind.experts; expert++) {
      const set = expertSet(expert, kind.experts, numSets) as number;
      const count = frozenByExpert[expert] as number;
      frozen.bySet[set] = (frozen.bySet[set] as number) + count * blocks;
      trained.bySet[set] = (trained.bySet[set] as number) + (kind.layers - count) * blocks;
    }
  }
  return { trained, frozen: rest, quantized };
}

/** Elements of a quantized block, and blocks whose scales are quantized together (native/kernels/quantize). */
const [QUANT_BLOCK, QUANT_GROUP] = [64, 256];

/** Returns the bytes of a quantized matrix: codes, a scale of each block, and two numbers of each group. */
function bytesOf(format: 'nf4' | 'int8', { shape: [rows = 0, columns = 0] }: SplitKind['kind']): number {
  const blocks = rows * Math.ceil(columns / QUANT_BLOCK);
  const code = QUANT_BLOCK / (format === 'nf4' ? 2 : 1);
  return blocks * (code + 1) + 8 * Math.ceil(blocks / QUANT_GROUP);
}

function quantizedBytes(spec: ResolvedJobSpec, rank: number): { byAll: number; ofSet: number } {
  const { byAll, bySet } = heldBlocks(spec).quantized;
  return { byAll, ofSet: bySet[rank % spec.zero.expert_parallel_size] as number };
}

/**
 * Returns ranks that include one with the maximal need in any world. The first rank of each expert set owns the most of
 * its set, and sets with equal numbers of blocks need the same.
 */
export function ranksToCompare(spec: ResolvedJobSpec): number[] {
  const { trained, frozen } = heldBlocks(spec);
  const firstOf = new Map<string, number>();
  for (const [set, blocks] of trained.bySet.entries()) {
    const key = `${blocks},${frozen.bySet[set]}`;
    if (!firstOf.has(key)) firstOf.set(key, set);
  }
  return [...firstOf.values()];
}

function staging(spec: ResolvedJobSpec, parts: readonly Part[]): number {
  const { zero } = spec;
  const bucketOf = ({ layout }: Part) => layout.maxBucketBlocks * BLOCK_NUMEL;
  const numBuckets = parts.reduce((sum, { layout }) => sum + layout.numBuckets, 0);
  const sent =
    Math.min(BUCKETS_AT_ONCE, Math.max(numBuckets, 1)) *
    Math.max(...parts.map(bucketOf)) *
    BYTES_OF_ELEMENT[zero.reduce_dtype];
  return parts.reduce((sum, part) => {
    // 16-bit sums are widened when they are copied to a bucket, unless they are in it as they are.
    const asIs = zero.grad_accum_dtype === zero.reduce_dtype && zero.gradient_predivide_factor === 1;
    const widened = addsLeaves(spec) && zero.grad_accum_dtype !== 'fp32' && !asIs ? bucketOf(part) * 4 : 0;
    return sum + widened + received(spec, part);
  }, sent);
}

/**
 * Sums of gradients that the device adds up for states in host memory: if they are smaller than the received pieces.
 */
function sumsInTransit({ zero }: ResolvedJobSpec, parts: readonly Part[]): number {
  const width = BYTES_OF_ELEMENT[zero.grad_accum_dtype];
  const sums = parts.map((part) =>
    width < termsOf(zero, part) * BYTES_OF_ELEMENT[zero.reduce_dtype] ? ownedInBucket(part) * width : 0,
  );
  return Math.max(0, ...sums);
}

function ownedInBucket({ layout, shard }: Part): number {
  return layout.maxOwnedInBucket(shard) * BLOCK_NUMEL;
}

/** Returns the maximum of terms of a sum that an exchange of a bucket completes. */
function termsOf({ lane_group }: ResolvedJobSpec['zero'], { layout: { worldSize } }: Part): number {
  if (worldSize % lane_group === 0) return worldSize / lane_group;
  return Math.min(worldSize, Math.floor((worldSize - 1) / lane_group) + 2);
}

/** Received gradients and sums of groups of lanes, like native/zero/exchange. */
function received({ zero }: ResolvedJobSpec, part: Part): number {
  const { layout, shard, numLanes } = part;
  const { worldSize } = layout;
  const { lane_group } = zero;
  const width = BYTES_OF_ELEMENT[zero.reduce_dtype];
  const terms = termsOf(zero, part) * ownedInBucket(part) * width;
  if (lane_group > 1 && worldSize % lane_group === 0) {
    const chunk = ownedAtPosition(layout, shard % lane_group, lane_group) * BLOCK_NUMEL;
    const swapped = worldSize === lane_group ? 0 : terms;
    return chunk * (lane_group * width + 4 + width) + swapped;
  }
  const lanes = worldSize === 1 ? 0 : worldSize * ownedInBucket(part) * width;
  if (lane_group === 1) return lanes;
  const sums = numLanes > worldSize ? layout.ownedBlocks(shard) * BLOCK_NUMEL : ownedInBucket(part);
  return lanes + sums * 4 + terms;
}

/** The most blocks of a bucket that the ranks of one group position own, one in each group of ranks. */
function ownedAtPosition(layout: ShardLayout, position: number, groupSize: number): number {
  let blocks = 0;
  for (let rank = position; rank < layout.worldSize; rank += groupSize)
    blocks += layout.maxOwnedInBucket(rank);
  return blocks;
}
