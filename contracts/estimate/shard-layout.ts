/**
 * How many blocks of a run of parameters each rank owns: the arithmetic of native/zero/shard_layout in closed form, since
 * an estimate wants the numbers of blocks and not their places.
 */

/** Elements of one block. */
export const BLOCK_NUMEL = 4096;

export function blocksOf(numel: number): number {
  return Math.ceil(numel / BLOCK_NUMEL);
}

/** Parameters laid out in blocks and cut into buckets, shared by some ranks. */
export class ShardLayout {
  /** Blocks of each bucket but the last, which has the rest. */
  private readonly fullBlocks: number;
  private readonly numFull: number;
  private readonly restBlocks: number;

  /**
   * @param numBlocks blocks of all parameters
   * @param bucketBlocks blocks that a bucket may hold
   */
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

  /**
   * Blocks that a rank owns. In each bucket the blocks that do not share out evenly go to ranks in turn, going on where
   * the bucket before ended: over all buckets that is as if all blocks were dealt out at once.
   */
  ownedBlocks(rank: number): number {
    return Math.floor(this.numBlocks / this.worldSize) + (rank < this.numBlocks % this.worldSize ? 1 : 0);
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
}
