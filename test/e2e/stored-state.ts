/** Checkpoints as they lie in a stack's object store, read without the worker's loader. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Checkpoint } from '../../contracts/index.js';
import type { StateName } from '../../contracts/rank-protocol.js';
import { type Manifest, parseManifest } from '../../platform/checkpoint/manifest.js';

export class StoredState {
  readonly manifest: Manifest;
  private readonly directory: string;

  constructor(dataDir: string, { prefix }: Checkpoint) {
    this.directory = join(dataDir, 'objects', prefix);
    this.manifest = parseManifest(readFileSync(join(this.directory, 'MANIFEST.json')));
  }

  /** One state of one parameter, put together from all shards. */
  read(state: StateName, param: string): Float32Array {
    const { numel } = this.manifest.params.find(({ name }) => name === param) ?? { numel: 0 };
    const values = new Float32Array(numel);
    for (const { file, tensors } of this.manifest.shards) {
      const wanted = tensors.filter((tensor) => tensor.state === state && tensor.param === param);
      if (wanted.length === 0) continue;
      const bytes = readFileSync(join(this.directory, file));
      for (const { byte_begin, byte_end, element_begin } of wanted) {
        const copy = Uint8Array.from(bytes.subarray(byte_begin, byte_end));
        values.set(new Float32Array(copy.buffer), element_begin);
      }
    }
    return values;
  }
}

/** Rounded to bf16, to nearest and to even where two are as near. */
export function roundedToBf16(values: Float32Array): Float32Array {
  const words = new Uint32Array(Float32Array.from(values).buffer);
  for (const [i, word] of words.entries()) words[i] = (word + 0x7fff + ((word >>> 16) & 1)) & 0xffff_0000;
  return new Float32Array(words.buffer);
}
