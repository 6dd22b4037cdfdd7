import * as fc from 'fast-check';
import t from 'tap';
import { blocksOf, type OwnedRun, ShardLayout } from './shard-layout.js';

/** The layout bucket by bucket and block by block, as native/zero/partition/shard_layout describes it. */
function dealOut(numels: readonly number[], worldSize: number, bucketBlocks: number, blockNumel: number) {
  const owned = Array.from({ length: worldSize }, () => 0);
  const most = Array.from({ length: worldSize }, () => 0);
  let next = 0;
  let left = numels.reduce((sum, numel) => sum + blocksOf(numel, blockNumel), 0);
  const numBlocks = left;
  /** Owner of each block. */
  let owners: number[] = [];
  let numBuckets = 0;
  for (; left > 0; numBuckets += 1) {
    const size = Math.min(bucketBlocks, left);
    const inBucket: number[] = [];
    for (let rank = 0; rank < worldSize; rank += 1) {
      const order = (rank - next + worldSize) % worldSize;
      const blocks = Math.floor(size / worldSize) + (order < size % worldSize ? 1 : 0);
      owned[rank] = (owned[rank] ?? 0) + blocks;
      most[rank] = Math.max(most[rank] ?? 0, blocks);
      for (let block = 0; block < blocks; block += 1) inBucket.push(rank);
    }
    owners = [...inBucket, ...owners];
    next = (next + size) % worldSize;
    left -= size;
  }
  return { numBlocks, numBuckets, owned, most, owners };
}

/** Runs of equal owners of blocks `[begin, end)`. */
function runsOf(owners: readonly number[], begin: number, end: number): OwnedRun[] {
  const runs: OwnedRun[] = [];
  for (let block = begin; block < end; block += 1) {
    const rank = owners[block] ?? -1;
    const last = runs.at(-1);
    if (last?.rank === rank) last.end = block + 1;
    else runs.push({ rank, begin: block, end: block + 1 });
  }
  return runs;
}

t.test('the closed form equals the block-by-block layout', async (t) => {
  const property = fc.property(
    fc.array(fc.integer({ min: 1, max: 60_000 }), { maxLength: 12 }),
    fc.integer({ min: 1, max: 9 }),
    fc.integer({ min: 1, max: 40 }),
    fc.constantFrom(512, 4096),
    fc.nat(),
    fc.nat(),
    (sizes, worldSize, bucketBlocks, blockNumel, a, b) => {
      const numBlocks = sizes.reduce((sum, numel) => sum + blocksOf(numel, blockNumel), 0);
      const layout = new ShardLayout(numBlocks, worldSize, bucketBlocks);
      const { owners, ...dealt } = dealOut(sizes, worldSize, bucketBlocks, blockNumel);
      const ranks = Array.from({ length: worldSize }, (_, rank) => rank);
      const cuts = owners.length + 1;
      const [begin = 0, end = 0] = [a % cuts, b % cuts].sort((x, y) => x - y);
      const closed = {
        numBlocks: layout.numBlocks,
        numBuckets: layout.numBuckets,
        owned: ranks.map((rank) => layout.ownedBlocks(rank)),
        most: ranks.map((rank) => layout.maxOwnedInBucket(rank)),
        before: ranks.map((rank) => layout.ownedBefore(begin, rank)),
        runs: [...layout.runs(begin, end)],
        own: ranks.map((rank) => (begin < end ? [...layout.runsOf(rank, begin, end)] : [])),
      };
      const before = ranks.map((rank) => owners.slice(0, begin).filter((owner) => owner === rank).length);
      const runs = runsOf(owners, begin, end);
      const own = ranks.map((wanted) => runs.filter(({ rank }) => rank === wanted));
      t.strictSame(closed, { ...dealt, before, runs, own });
    },
  );
  fc.assert(property, { numRuns: 500, seed: 7 });
});
