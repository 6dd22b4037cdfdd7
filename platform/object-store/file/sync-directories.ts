import { dirname } from 'node:path';
import { isCode } from './errors.js';
import type { FileSystem } from './file-system.js';

/**
 * Makes the name of a file durable by syncing its directory and the created directories above it. If a
 * directory is gone while `marker` exists, the file was deleted concurrently.
 * @param dir of the file
 * @param firstMade the topmost directory that was created for it, if any
 * @param marker a directory that exists as long as the whole store
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
