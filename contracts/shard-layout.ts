/**
 * Ownership of parameter blocks by rank: the arithmetic of native/zero/partition/shard_layout in closed form, so that
 * estimates, shards and checkpoint readers need no list of blocks.
 */

import type { Sharding } from './state-records.js';
import type { Precision, ResolvedJobSpec } from './types.js';

/** Elements of one block. */
export const BLOCK_NUMEL = 4096;

export function blocksOf(numel: number, blockNumel = BLOCK_NUMEL): number {
  return Math.ceil(numel / blockNumel);
}

export const BYTES_OF_ELEMENT: Readonly<Record<Precision, number>> = { bf16: 2, fp16: 2, fp32: 4 };

/** Sharding of a job's state by the native core. */
export function shardingOf(zero: ResolvedJobSpec['zero']): Sharding {
  const bucketBlocks = Math.floor(zero.bucket_bytes / (BLOCK_NUMEL * BYTES_OF_ELEMENT[zero.reduce_dtype]));
  return { block_elements: BLOCK_NUMEL, bucket_blocks: bucketBlocks, expert_sets: zero.expert_parallel_size };
}

/** Set of an expert; null for parameters shared by all ranks, including all experts if there is a single set. */
export function expertSet(expert: number | null, numExperts: number, numSets: number): number | null {
  return expert === null || numSets === 1 ? null : Math.floor((expert * numSets) / numExperts);
}

/** Blocks `[begin, end)` of one rank. */
export interface OwnedRun {
  rank: number;
  begin: number;
  end: number;
}

/**
 * Parameters laid out contiguously in blocks and cut into buckets from the end; bucket 0 is the last one. In each
 * bucket every rank owns one run of blocks, in rank order. The remainder of a bucket is assigned to ranks in turn,
 * continuing where the previous bucket ended.
 */
export class ShardLayout {
  /** Blocks of each bucket but the last, which has the rest. */
  private readonly fullBlocks: number;
  private readonly numFull: number;
  private readonly restBlocks: number;

  /**  @param numBlocks blocks of all parameters @param bucketBlocks maximum blocks of a bucket */
  constructor(
    readonly numBlocks: number,
    readonly worldSize: number,
    bucketBlocks: number,
  ) {
    this.fullBlocks = Math.min(bucketBlocks, this.numBlocks);
    this.numFull = this.fullBlocks === 0 ? 0 : Math.floor(this.numBlocks / this.fullBlocks);
    this.restBlocks = this.numBlocks - this.numFull * this.fullBlocks;
  }

  get maxBucketBlocks(): number {
    return this.fullBlocks;
  }

  get numBuckets(): number {
    return this.numFull + (this.restBlocks > 0 ? 1 : 0);
  }

  /** Blocks that a rank owns: summed over all buckets it equals one division of all blocks. */
  ownedBlocks(rank: number): number {
    return this.dealt(this.numBlocks, rank);
  }

  /** The most blocks that a rank owns in any one bucket. */
  maxOwnedInBucket(rank: number): number {
    const { worldSize, fullBlocks, numFull, restBlocks } = this;
    const extrasOfFull = numFull * (fullBlocks % worldSize);
    const inFull = Math.floor(fullBlocks / worldSize) + (rank < extrasOfFull ? 1 : 0);
    const ranksBefore = (rank - (extrasOfFull % worldSize) + worldSize) % worldSize;
    const inRest = Math.floor(restBlocks / worldSize) + (ranksBefore < restBlocks % worldSize ? 1 : 0);
    return Math.max(numFull === 0 ? 0 : inFull, inRest);
  }

  /** Number of blocks before `block` that a rank owns. */
  ownedBefore(block: number, rank: number): number {
    const { numBlocks, fullBlocks } = this;
    // The following buckets are whole; the part after the block is subtracted from its own bucket.
    const bucket = block === numBlocks ? 0 : this.bucketOf(block);
    const [begin, end] =
      block === numBlocks
        ? [block, block]
        : [this.firstBlock(bucket, rank), this.firstBlock(bucket, rank + 1)];
    const behind = this.dealt(bucket * fullBlocks, rank) + Math.max(0, end - Math.max(begin, block));
    return this.ownedBlocks(rank) - behind;
  }

  /** Owners of blocks `[begin, end)` as maximal runs. */
  runs(begin: number, end: number): Generator<OwnedRun> {
    return joined(this.cutRuns(begin, end));
  }

  /** Maximal runs of one rank in blocks `[begin, end)`. */
  runsOf(rank: number, begin: number, end: number): Generator<OwnedRun> {
    return joined(this.cutRunsOf(rank, begin, end));
  }

  /** Runs cut at the borders of buckets. */
  private *cutRuns(begin: number, end: number): Generator<OwnedRun> {
    for (let at = begin; at < end; ) {
      const bucket = this.bucketOf(at);
      const rank = this.ownerIn(bucket, at);
      const run = { rank, begin: at, end: Math.min(end, this.firstBlock(bucket, rank + 1)) };
      yield run;
      at = run.end;
    }
  }

  private *cutRunsOf(rank: number, begin: number, end: number): Generator<OwnedRun> {
    for (let bucket = this.bucketOf(begin); bucket >= this.bucketOf(end - 1); bucket -= 1) {
      const from = Math.max(begin, this.firstBlock(bucket, rank));
      const to = Math.min(end, this.firstBlock(bucket, rank + 1));
      if (from < to) yield { rank, begin: from, end: to };
    }
  }

  /** Blocks of a rank among the last `numBlocks`, which must be whole buckets or all blocks. */
  private dealt(numBlocks: number, rank: number): number {
    const { worldSize } = this;
    return Math.floor(numBlocks / worldSize) + (rank < numBlocks % worldSize ? 1 : 0);
  }

  private bucketOf(block: number): number {
    return Math.floor((this.numBlocks - 1 - block) / this.fullBlocks);
  }

  /** First block of a rank's run in a bucket; for rank world_size, the end of the bucket. */
  private firstBlock(bucket: number, rank: number): number {
    const { worldSize, fullBlocks } = this;
    const bucketEnd = this.numBlocks - bucket * fullBlocks;
    const bucketBegin = Math.max(0, bucketEnd - fullBlocks);
    const size = bucketEnd - bucketBegin;
    const extras = size % worldSize;
    const firstExtra = (bucket * fullBlocks) % worldSize;
    // The extra blocks start at firstExtra and wrap around; `wrapped` of them start again at rank 0.
    const wrapped = Math.max(0, firstExtra + extras - worldSize);
    const unwrapped = Math.min(Math.max(rank - firstExtra, 0), extras - wrapped);
    return bucketBegin + rank * Math.floor(size / worldSize) + unwrapped + Math.min(rank, wrapped);
  }

  /** Rank whose run in the bucket contains the block: the last one that begins no later. */
  private ownerIn(bucket: number, block: number): number {
    let [low, high] = [0, this.worldSize - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.firstBlock(bucket, middle) <= block) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/** Joins adjacent runs of one rank. */
function* joined(runs: Iterable<OwnedRun>): Generator<OwnedRun> {
  let last: OwnedRun | undefined;
  for (const run of runs) {
    if (last?.rank === run.rank && last.end === run.begin) last = { ...last, end: run.end };
    else {
      if (last) yield last;
      last = run;
    }
  }
  if (last) yield last;
}
