/** Independent implementation of the formats in docs/data.md and docs/checkpoints.md, written from these pages only. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createXXHash128 } from 'hash-wasm';

function philox(key: bigint, counter: readonly number[]): number[] {
  const low = (value: bigint) => value & 0xffffffffn;
  let [c0, c1, c2, c3] = counter.map(BigInt) as [bigint, bigint, bigint, bigint];
  let [k0, k1] = [low(key), key >> 32n];
  for (let round = 0; round < 10; round++) {
    const [p0, p1] = [0xd2511f53n * c0, 0xcd9e8d57n * c2];
    [c0, c1, c2, c3] = [(p1 >> 32n) ^ c1 ^ k0, low(p1), (p0 >> 32n) ^ c3 ^ k1, low(p0)];
    [k0, k1] = [low(k0 + 0x9e3779b9n), low(k1 + 0xbb67ae85n)];
  }
  return [c0, c1, c2, c3].map(Number);
}

/** The sequence at a position of an epoch. @param dataset its number in a mixture */
export function sequenceAt(
  seed: number,
  sequences: number,
  epoch: number,
  position: number,
  dataset = 0,
): number {
  const bits = sequences === 1 ? 0 : Math.floor(Math.log2(sequences - 1)) + 1;
  const half = 2 ** Math.max(1, Math.ceil(bits / 2));
  let value = position;
  do {
    let [left, right] = [Math.floor(value / half), value % half];
    for (let number = 6 * dataset; number < 6 * dataset + 6; number++) {
      const counter = [right, number, epoch % 2 ** 32, Math.floor(epoch / 2 ** 32)];
      const [word = 0] = philox(BigInt(seed), counter);
      [left, right] = [right, left ^ (word % half)];
    }
    value = left * half + right;
  } while (value >= sequences);
  return value;
}

/**
 * The first sequences of a mixture, as `dataset.sequence`, without random access. Each division deals its
 * positions out one by one, and a dataset gets one whenever the whole part of its due has grown.
 */
export function mixtureOf(seed: number, counts: number[], weights: number[], length: number): string[] {
  let positions = Array.from({ length }, (_, position) => position);
  const found: string[] = [];
  for (const [dataset, count] of counts.entries()) {
    const [weight = 0] = weights.slice(dataset);
    const left = weights.slice(dataset).reduce((sum, each) => sum + each, 0);
    let taken = 0;
    positions = positions.filter((position, index) => {
      if ((taken + 1) * left > (index + 1) * weight) return true;
      const sequence = sequenceAt(seed, count, Math.floor(taken / count), taken % count, dataset);
      found[position] = `${dataset}.${sequence}`;
      taken += 1;
      return false;
    });
  }
  return found;
}

interface Manifest {
  world_size: number;
  params: { name: string; numel: number; frozen: boolean; base: boolean; expert_set: number | null }[];
  sharding: { bucket_blocks: number; expert_sets: number };
  shards: { file: string; sha256: string }[];
  state_digest: string;
}

export interface ReadCheckpoint {
  manifest: Manifest;
  /** `state/parameter` to the bytes of all its elements. */
  arrays: Map<string, Buffer>;
  /** Tensor names of each shard. */
  tensors: string[][];
  /** Owning rank of each block of a parameter. */
  owners: Map<string, number[]>;
}

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const blocksOf = ({ numel }: { numel: number }) => Math.ceil(numel / 4096);

function ownersOf({ params, sharding, world_size }: Manifest): Map<string, number[]> {
  const found = new Map<string, number[]>();
  const partOf = ({ frozen, base, expert_set }: Manifest['params'][number]) =>
    `${frozen} ${base} ${expert_set}`;
  for (const part of new Set(params.map(partOf))) {
    const members = params.filter((param) => partOf(param) === part);
    const set = members[0]?.expert_set ?? null;
    const ranks = Array.from({ length: world_size }, (_, rank) => rank).filter(
      (rank) => set === null || rank % sharding.expert_sets === set,
    );
    const left = members.flatMap((param) => Array.from({ length: blocksOf(param) }, () => param.name));
    const owners: number[] = [];
    // From the end of the part to its front.
    let next = 0;
    for (let end = left.length; end > 0; end -= sharding.bucket_blocks) {
      const size = Math.min(sharding.bucket_blocks, end);
      const counts = ranks.map(() => Math.floor(size / ranks.length));
      for (let more = size % ranks.length; more > 0; more--, next++) {
        const index = next % ranks.length;
        counts[index] = (counts[index] ?? 0) + 1;
      }
      owners.unshift(...ranks.flatMap((rank, index) => Array<number>(counts[index] ?? 0).fill(rank)));
    }
    for (const [block, name] of left.entries())
      found.set(name, [...(found.get(name) ?? []), owners[block] ?? -1]);
  }
  return found;
}

export function readCheckpoint(folder: string): ReadCheckpoint {
  const text = readFileSync(join(folder, 'MANIFEST.json'));
  if (text.subarray(-66).toString() !== `${sha256(text.subarray(0, -66))}"}`)
    throw new Error('the manifest was changed');
  const manifest = JSON.parse(text.toString()) as Manifest;
  const owners = ownersOf(manifest);
  const numels = new Map(manifest.params.map(({ name, numel }) => [name, numel]));
  const arrays = new Map<string, Buffer>();
  const tensors = manifest.shards.map((shard, rank) => {
    const file = readFileSync(join(folder, shard.file));
    if (sha256(file) !== shard.sha256) throw new Error(`${shard.file} was changed`);
    const data = 8 + Number(file.readBigUInt64LE());
    const { __metadata__: _, ...entries } = JSON.parse(file.subarray(8, data).toString()) as Record<
      string,
      { data_offsets: [number, number] }
    >;
    for (const [name, { data_offsets }] of Object.entries(entries)) {
      const param = name.slice(name.indexOf('/') + 1);
      const bytes = 4 * (numels.get(param) ?? 0);
      const array = arrays.get(name) ?? Buffer.alloc(bytes, 0xff);
      arrays.set(name, array);
      let from = data + data_offsets[0];
      for (const [block, owner] of (owners.get(param) ?? []).entries()) {
        if (owner !== rank) continue;
        const length = Math.min(bytes - block * BLOCK_BYTES, BLOCK_BYTES);
        file.copy(array, block * BLOCK_BYTES, from, from + length);
        from += length;
      }
      if (from !== data + data_offsets[1])
        throw new Error(`${shard.file}: ${name} is not what its rank owns`);
    }
    return Object.keys(entries);
  });
  return { manifest, arrays, tensors, owners };
}

const BLOCK_BYTES = 4096 * 4;
const STATES = ['master', 'exp_avg', 'exp_avg_sq', 'momentum_buffer', 'sum', 'ema'];

/** Digest of the read state. */
export async function digestOf({ manifest, arrays }: ReadCheckpoint): Promise<string> {
  let total = 0n;
  let first = 0;
  for (const { name, numel } of manifest.params) {
    const blocks = Math.ceil(numel / 4096);
    for (const [number, state] of STATES.entries()) {
      const array = arrays.get(`${state}/${name}`);
      if (!array) continue;
      const padded = Buffer.concat([array], blocks * BLOCK_BYTES);
      for (let block = 0; block < blocks; block++) {
        // The seed in two 32-bit halves: block number, and state number in the highest byte.
        const hash = await createXXHash128(first + block, number * 2 ** 24);
        hash.update(padded.subarray(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES));
        total += BigInt(`0x${hash.digest()}`);
      }
    }
    first += blocks;
  }
  return (total % 2n ** 128n).toString(16).padStart(32, '0');
}
