/** Checkpoints of a stack's object store, read without the program's own reader. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Checkpoint } from '../../contracts/index.js';
import type { StateName } from '../../contracts/rank-protocol.js';
import { type Manifest, parseManifest } from '../../formats/checkpoint/manifest.js';
import { type ReadCheckpoint, readCheckpoint } from '../docs/reference-readers.js';

export class StoredState {
  readonly manifest: Manifest;
  /** Tensor names of each shard. */
  readonly tensors: readonly (readonly string[])[];
  private readonly arrays: ReadCheckpoint['arrays'];

  constructor(dataDir: string, { prefix }: Checkpoint) {
    const directory = join(dataDir, 'objects', prefix);
    this.manifest = parseManifest(readFileSync(join(directory, 'MANIFEST.json')));
    ({ arrays: this.arrays, tensors: this.tensors } = readCheckpoint(directory));
  }

  /** One state of one parameter, assembled from all shards. */
  read(state: StateName, param: string): Float32Array {
    const bytes = Uint8Array.from(this.arrays.get(`${state}/${param}`) ?? []);
    return new Float32Array(bytes.buffer);
  }
}

/** Rounds to bf16, to nearest even. */
export function roundedToBf16(values: Float32Array): Float32Array {
  const words = new Uint32Array(Float32Array.from(values).buffer);
  for (const [i, word] of words.entries()) words[i] = (word + 0x7fff + ((word >>> 16) & 1)) & 0xffff_0000;
  return new Float32Array(words.buffer);
}
