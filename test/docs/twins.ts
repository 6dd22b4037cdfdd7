/** What docs/data.md and docs/checkpoints.md describe, written from these pages alone: nothing here is of the program. */
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

/** The sequence at a position of an epoch. */
export function sequenceAt(seed: number, sequences: number, epoch: number, position: number): number {
  const bits = sequences === 1 ? 0 : Math.floor(Math.log2(sequences - 1)) + 1;
  const half = 2 ** Math.max(1, Math.ceil(bits / 2));
  let value = position;
  do {
    let [left, right] = [Math.floor(value / half), value % half];
    for (let number = 0; number < 6; number++) {
      const counter = [right, number, epoch % 2 ** 32, Math.floor(epoch / 2 ** 32)];
      const [word = 0] = philox(BigInt(seed), counter);
      [left, right] = [right, left ^ (word % half)];
    }
    value = left * half + right;
  } while (value >= sequences);
  return value;
}

interface Manifest {
  params: { name: string; numel: number }[];
  shards: { file: string; sha256: string }[];
  state_digest: string;
}

export interface ReadCheckpoint {
  manifest: Manifest;
  /** `state/parameter` to the bytes of all of its elements. */
  arrays: Map<string, Buffer>;
  /** Names of all tensors of all shards. */
  tensors: string[];
}

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

export function readCheckpoint(folder: string): ReadCheckpoint {
  const text = readFileSync(join(folder, 'MANIFEST.json'));
  if (text.subarray(-66).toString() !== `${sha256(text.subarray(0, -66))}"}`)
    throw new Error('the manifest was changed');
  const manifest = JSON.parse(text.toString()) as Manifest;
  const numels = new Map(manifest.params.map(({ name, numel }) => [name, numel]));
  const arrays = new Map<string, Buffer>();
  const tensors: string[] = [];
  for (const shard of manifest.shards) {
    const file = readFileSync(join(folder, shard.file));
    if (sha256(file) !== shard.sha256) throw new Error(`${shard.file} was changed`);
    const data = 8 + Number(file.readBigUInt64LE());
    const { __metadata__: elements, ...entries } = JSON.parse(file.subarray(8, data).toString()) as {
      __metadata__: Record<string, string>;
    } & Record<string, { data_offsets: [number, number] }>;
    for (const [name, { data_offsets }] of Object.entries(entries)) {
      tensors.push(name);
      const [plain = ''] = name.split('#');
      const numel = numels.get(plain.slice(plain.indexOf('/') + 1)) ?? 0;
      const array = arrays.get(plain) ?? Buffer.alloc(4 * numel, 0xff);
      const [begin] = (elements[name] ?? '').split(':').map(Number) as [number];
      file.copy(array, 4 * begin, data + data_offsets[0], data + data_offsets[1]);
      arrays.set(plain, array);
    }
  }
  return { manifest, arrays, tensors };
}

const BLOCK_BYTES = 4096 * 4;
const STATES = ['master', 'exp_avg', 'exp_avg_sq', 'momentum_buffer', 'sum'];

/** The digest of what was read. */
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
        // The seed in two halves of 32 bits: number of the block, and number of the state in the highest byte.
        const hash = await createXXHash128(first + block, number * 2 ** 24);
        hash.update(padded.subarray(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES));
        total += BigInt(`0x${hash.digest()}`);
      }
    }
    first += blocks;
  }
  return (total % 2n ** 128n).toString(16).padStart(32, '0');
}
