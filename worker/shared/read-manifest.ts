import { MANIFEST_FILE } from '../../formats/checkpoint/layout.js';
import { type Manifest, parseManifest } from '../../formats/checkpoint/manifest.js';
import type { ObjectStore } from '../../platform/object-store/index.js';

/**
 * Reads and checks the manifest of a checkpoint.
 * @param directory key of the checkpoint's directory
 * @throws ZerofleetError `manifest_invalid`; errors of the object store
 */
export async function readManifest(objects: ObjectStore, directory: string): Promise<Manifest> {
  return parseManifest(await objects.get(`${directory}/${MANIFEST_FILE}`));
}
