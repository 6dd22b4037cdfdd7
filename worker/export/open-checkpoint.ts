import type { ResolvedJobSpec } from '../../contracts/index.js';
import type { RetryPolicy, StateName } from '../../contracts/rank-protocol.js';
import type { Manifest } from '../../platform/checkpoint/manifest.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import { readManifest } from '../checkpoint/read-manifest.js';
import { retryTransient } from '../common/errors.js';
import type { NativeCore } from '../native/adapter.js';
import { openBase } from './base-reader.js';
import { TensorReader } from './tensor-reader.js';

export interface OpenCheckpoint {
  manifest: Manifest;
  /** Reads one state of one parameter, in the order of its elements: fp32, little-endian. */
  read(state: StateName, param: string, numel: number): AsyncIterable<Uint8Array>;
}

/**
 * Opens a checkpoint to read whole parameters, those of the base of its adapters included.
 * @throws ZerofleetError `manifest_invalid`, `base_damaged`; while reading also `shard_corrupt`; errors of the object store
 */
export async function openCheckpoint(
  objects: ObjectStore,
  core: Pick<NativeCore, 'castTo16Bit' | 'initialValues'>,
  { spec, checkpoint, retry }: { spec: ResolvedJobSpec; checkpoint: string; retry: RetryPolicy },
): Promise<OpenCheckpoint> {
  const manifest = await retryTransient(() => readManifest(objects, checkpoint), retry);
  const reader = new TensorReader({ objects, directory: checkpoint, manifest, retry });
  if (manifest.base === null)
    return { manifest, read: (state, param, numel) => reader.read(state, param, numel) };
  const readBase = await openBase({ objects, core, spec, manifest, retry }, manifest.base.source);
  const base = new Set(manifest.params.filter((param) => param.base).map(({ name }) => name));
  return {
    manifest,
    read: (state, param, numel) =>
      base.has(param) ? readBase(param, numel) : reader.read(state, param, numel),
  };
}
