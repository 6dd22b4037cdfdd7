import type { ExportKind, ResolvedJobSpec } from '../../../contracts/index.js';
import type { RetryPolicy, StateName } from '../../../contracts/rank-protocol.js';
import type { Manifest } from '../../../formats/checkpoint/manifest.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { retryTransient } from '../../shared/errors.js';
import type { NativeCore } from '../../shared/native/adapter.js';
import { readManifest } from '../../shared/read-manifest.js';
import { openBase, type ReadParam } from './base-reader.js';
import { TensorReader, weightsState } from './tensor-reader.js';

export interface OpenCheckpoint {
  manifest: Manifest;
  /** Reads one state of one parameter, in the order of its elements: fp32, little-endian. */
  read(state: StateName, param: string, numel: number): AsyncIterable<Uint8Array>;
  /** Reads the weights that were chosen of one parameter in the same way. */
  readWeights: ReadParam;
}

interface CheckpointWeights {
  /** Document of the checkpoint's job. */
  spec: ResolvedJobSpec;
  /** Key of the checkpoint's directory. */
  checkpoint: string;
  weights: ExportKind['weights'];
  retry: RetryPolicy;
}

/**
 * Opens a checkpoint to read whole parameters, those of the base of its adapters included.
 * @throws ZerofleetError `manifest_invalid`, `base_damaged`; while reading also `shard_corrupt`; errors of the object
 *   store
 */
export async function openCheckpoint(
  objects: ObjectStore,
  core: Pick<NativeCore, 'castTo16Bit' | 'initialValues' | 'quantizedValues'>,
  { spec, checkpoint, weights, retry }: CheckpointWeights,
): Promise<OpenCheckpoint> {
  const manifest = await retryTransient(() => readManifest(objects, checkpoint), retry);
  const reader = new TensorReader({ objects, directory: checkpoint, manifest, retry });
  const opened = (read: OpenCheckpoint['read']): OpenCheckpoint => {
    const stateOf = weightsState(manifest, weights);
    return { manifest, read, readWeights: (param, numel) => read(stateOf(param), param, numel) };
  };
  if (manifest.base === null) return opened((state, param, numel) => reader.read(state, param, numel));
  const readBase = await openBase({ objects, core, spec, manifest, retry }, manifest.base.source);
  const base = new Set(manifest.params.filter((param) => param.base).map(({ name }) => name));
  return opened((state, param, numel) =>
    base.has(param) ? readBase(param, numel) : reader.read(state, param, numel),
  );
}
