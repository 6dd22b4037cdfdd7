import { dirname } from 'node:path';
import { isCode } from './errors.js';
import type { FileSystem } from './file-system.js';

/**
 * Makes the name of a file durable: a name is when its directory is, and that one when the directory above it is. A directory that is gone
 * while `marker` is there went with the file, which somebody deleted at once.
 * @param dir of the file
 * @param firstMade the topmost directory that was made for it, if any was
 * @param marker a directory that is there as long as the whole store is
 */
export async function syncDirectories(
  fs: FileSystem,
  dir: string,
  firstMade: string | undefined,
  marker: string,
): Promise<void> {
  const last = firstMade === undefined ? dir : dirname(firstMade);
  for (let current = dir; ; current = dirname(current)) {
    const handle = await fs.open(current, 'r').catch(async (error: unknown) => {
      if (!isCode(error, 'ENOENT')) throw error;
      await fs.stat(marker);
      return null;
    });
    await handle?.sync().finally(() => handle.close());
    if (current === last) return;
  }
}
