import type { Dirent } from 'node:fs';
import { join } from 'node:path';
import { isKey } from '../common/keys.js';
import { fileError, isCode } from './errors.js';
import type { FileSystem } from './file-system.js';

/** Returns the names in a directory of the store in key order, directories with a trailing slash. */
export async function sortedEntries(fs: FileSystem, root: string, dir: string): Promise<string[]> {
  let entries: Dirent[];
  try {
    entries = await fs.readdir(join(root, dir), { withFileTypes: true });
  } catch (error) {
    // Deleted during the listing, or a prefix without objects.
    if (isCode(error, 'ENOENT', 'ENOTDIR')) return [];
    throw fileError(error, dir, 'object_not_found');
  }
  return entries
    .filter((entry) => isKey(dir + entry.name) && (entry.isDirectory() || entry.isFile()))
    .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
    .sort();
}
