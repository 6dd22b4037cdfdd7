import type { BigIntStats } from 'node:fs';
import type { ObjectInfo } from '../common/port.js';

/**
 * Builds the entry that `head` and `list` report for a file. A put creates a new file while the previous
 * version still exists, so consecutive versions have different inodes. Inodes of older versions are reused;
 * the modification time distinguishes those, with the resolution of the kernel's clock (a few milliseconds).
 */
export function infoOf(key: string, { ino, mtime, mtimeNs, size }: BigIntStats): ObjectInfo {
  return { key, bytes: Number(size), last_modified: mtime.toISOString(), etag: `${ino}-${mtimeNs}-${size}` };
}
