/** Checkpoints as they lie in a stack's object store, read without the program's own reader. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Checkpoint } from '../../contracts/index.js';
import type { StateName } from '../../contracts/rank-protocol.js';
import { type Manifest, parseManifest } from '../../platform/checkpoint/manifest.js';
import { type ReadCheckpoint, readCheckpoint } from '../docs/twins.js';

export class StoredState {
  readonly manifest: Manifest;
  /** Names of the tensors of each shard. */
  readonly tensors: readonly (readonly string[])[];
  private readonly arrays: ReadCheckpoint['arrays'];

  constructor(dataDir: string, { prefix }: Checkpoint) {
    const directory = join(dataDir, 'objects', prefix);
    this.manifest = parseManifest(readFileSync(join(directory, 'MANIFEST.json')));
    ({ arrays: this.arrays, tensors: this.tensors } = readCheckpoint(directory));
  }

  /** One state of one parameter, put together from all shards. */
  read(state: StateName, param: string): Float32Array {
    const bytes = Uint8Array.from(this.arrays.get(`${state}/${param}`) ?? []);
    return new Float32Array(bytes.buffer);
  }
}

/** Rounded to bf16, to nearest and to even where two are as near. */
export function roundedToBf16(values: Float32Array): Float32Array {
  const words = new Uint32Array(Float32Array.from(values).buffer);
  for (const [i, word] of words.entries()) words[i] = (word + 0x7fff + ((word >>> 16) & 1)) & 0xffff_0000;
  return new Float32Array(words.buffer);
}
