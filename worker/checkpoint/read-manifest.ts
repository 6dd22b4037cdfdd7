import { ZerofleetError } from '../../contracts/index.js';
import { MANIFEST_FILE } from '../../platform/checkpoint/layout.js';
import { type Manifest, parseManifest } from '../../platform/checkpoint/manifest.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import { checkCoverage } from './coverage.js';

/**
 * Reads and checks the manifest of a checkpoint: its form, and that its shards hold everything once.
 * @param directory key of the checkpoint's directory
 * @throws ZerofleetError `manifest_invalid`, `checkpoint_incomplete`; errors of the object store
 */
export async function readManifest(objects: ObjectStore, directory: string): Promise<Manifest> {
  const manifest = parseManifest(await objects.get(`${directory}/${MANIFEST_FILE}`));
  try {
    checkCoverage(manifest, manifest.shards);
  } catch (error) {
    throw new ZerofleetError('manifest_invalid', (error as Error).message, { cause: error });
  }
  return manifest;
}

/** 8 hexadecimal digits. */
export function hexCrc(crc: number): string {
  return crc.toString(16).padStart(8, '0');
}
