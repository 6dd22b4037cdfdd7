import type { ExportKind } from '../../../contracts/index.js';
import type { RetryPolicy, StateName } from '../../../contracts/rank-protocol.js';
import type { Manifest } from '../../../formats/checkpoint/manifest.js';
import { planReads } from '../../../formats/checkpoint/read-plan.js';
import { ShardContents } from '../../../formats/checkpoint/shard-contents.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { ChunkReader } from './chunk-reader.js';

interface TensorReaderOptions {
  objects: ObjectStore;
  /** Key of the checkpoint's directory. */
  directory: string;
  manifest: Manifest;
  retry: RetryPolicy;
}

/**
 * Returns the state with the weights of a parameter. Parameters that are not trained have no average, and before the
 * first update nothing has.
 */
export function weightsState(
  manifest: Manifest,
  weights: ExportKind['weights'],
): (param: string) => StateName {
  if (weights === 'trained' || manifest.optimizer_steps === 0) return () => 'master';
  const frozen = new Set(manifest.params.filter((param) => param.frozen).map(({ name }) => name));
  return (param) => (frozen.has(param) ? 'master' : weights);
}

/** Reads whole parameters of a checkpoint in pieces, verified, with constant memory. */
export class TensorReader {
  private readonly manifest: Manifest;
  private readonly chunks: ChunkReader;
  private readonly contents: ShardContents;

  constructor({ objects, directory, manifest, retry }: TensorReaderOptions) {
    this.manifest = manifest;
    this.contents = new ShardContents(manifest);
    this.chunks = new ChunkReader({ objects, directory, files: manifest.shards, retry });
  }

  /**
   * Reads one state of one parameter, in the order of its elements: fp32, little-endian.
   * @throws ZerofleetError `shard_corrupt`; errors of the object store
   */
  async *read(state: StateName, param: string, numel: number): AsyncGenerator<Uint8Array> {
    const wanted = { states: [state], slices: [{ param, begin: 0, end: numel }] };
    // The plan is in the order of the files, but elements are returned in order.
    const plan = await planReads(this.manifest, wanted, this.contents);
    const reads = [...plan].sort((a, b) => a.begin - b.begin);
    for (const { file, byte_begin, byte_end } of reads) yield* this.chunks.read(file, byte_begin, byte_end);
  }
}
