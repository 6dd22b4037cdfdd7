import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { EXPORT_RECORD_FILE } from './export-record.js';
import { MANIFEST_FILE } from './layout.js';

/** Objects deleted with one request. */
const BATCH = 1000;

/**
 * Removes all objects below a prefix. Commit documents go first, so that no manifest ever refers to missing
 * shards.
 */
export async function removeFolder(objects: ObjectStore, prefix: string): Promise<void> {
  await removeWhere(objects, prefix, (key) => isCommit(key));
  await removeWhere(objects, prefix, (key) => !isCommit(key));
}

function isCommit(key: string): boolean {
  return key.endsWith(`/${MANIFEST_FILE}`) || key.endsWith(`/${EXPORT_RECORD_FILE}`);
}

async function removeWhere(
  objects: ObjectStore,
  prefix: string,
  wanted: (key: string) => boolean,
): Promise<void> {
  let keys: string[] = [];
  for await (const { key } of objects.list(`${prefix}/`)) {
    if (!wanted(key)) continue;
    keys.push(key);
    if (keys.length < BATCH) continue;
    await objects.delete(keys);
    keys = [];
  }
  if (keys.length > 0) await objects.delete(keys);
}
