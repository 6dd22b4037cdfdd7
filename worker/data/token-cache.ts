import { createHash, randomUUID } from 'node:crypto';
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Dataset, ZerofleetError } from '../../contracts/index.js';
import type { ObjectStore } from '../../platform/object-store/port.js';
import { BYTES_PER_TOKEN, bytesToTokens } from './tokenize.js';

export interface TokenCacheRequest {
  dataset: Dataset;
  /** Where the dataset's bytes lie in the object store. */
  object_key: string;
  /** Absolute; made when missing. */
  cache_dir: string;
}

/** Temporary files of dead preparations are removed when they are older than this. */
const STALE_TEMP_MS = 24 * 3600 * 1000;

/**
 * Makes the dataset's token file, or finds it from an earlier time: its name is the digest of what it was made from, and
 * it appears under that name only when it is whole and on disk. Any number of processes may do this at once.
 * Memory use does not depend on the size of the dataset.
 * @returns the absolute path of the token file
 * @throws `dataset_corrupt` when the stored bytes are not the ones that were uploaded; errors of the object store and
 *   of the file system (ENOSPC) as they are
 */
export async function prepareTokens(objects: ObjectStore, request: TokenCacheRequest): Promise<string> {
  const { dataset, cache_dir } = request;
  const path = join(cache_dir, `${dataset.digest.replace(':', '-')}.bytes.u16`);
  if (await hasSize(path, dataset.bytes * BYTES_PER_TOKEN)) return path;
  await mkdir(cache_dir, { recursive: true });
  await removeStale(cache_dir);
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    await writeTokens(objects, request, temporary);
    await rename(temporary, path);
    await syncDirectory(cache_dir);
  } finally {
    await rm(temporary, { force: true });
  }
  return path;
}

async function writeTokens(objects: ObjectStore, request: TokenCacheRequest, path: string): Promise<void> {
  const { dataset, object_key } = request;
  const hash = createHash('sha256');
  let bytes = 0;
  const file = await open(path, 'wx');
  try {
    for await (const chunk of await objects.stream(object_key)) {
      hash.update(chunk);
      bytes += chunk.length;
      await writeAll(file, bytesToTokens(chunk));
    }
    const digest = `sha256:${hash.digest('hex')}`;
    if (digest !== dataset.digest || bytes !== dataset.bytes) {
      throw new ZerofleetError(
        'dataset_corrupt',
        `dataset ${dataset.id} has ${bytes} bytes with digest ${digest}; ${dataset.bytes} with ${dataset.digest} were uploaded`,
      );
    }
    await file.sync();
  } finally {
    await file.close();
  }
}

async function writeAll(file: FileHandle, data: Uint8Array): Promise<void> {
  for (let written = 0; written < data.length; ) {
    written += (await file.write(data, written)).bytesWritten;
  }
}

async function hasSize(path: string, bytes: number): Promise<boolean> {
  const info = await stat(path).catch(() => null);
  return info?.size === bytes;
}

async function removeStale(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (!name.endsWith('.tmp')) continue;
    const path = join(directory, name);
    const info = await stat(path).catch(() => null);
    if (info && Date.now() - info.mtimeMs > STALE_TEMP_MS) await rm(path, { force: true });
  }
}

/** A rename is durable only when its directory is. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
