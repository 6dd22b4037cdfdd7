/**
 * Directory of a machine's prepared data. Any number of programs use it at once, and any of them may be killed.
 *
 *   <cache>/<entry>/…                  files that never change
 *   <cache>/<entry>/summary.json       the seal: exists only if all files do
 *   <cache>/<entry>/<name>.use         mark of a user of the entry; touched periodically, otherwise stale
 *   <cache>/<entry>.<name>.tmp/…       entry that is being built or removed
 *
 * A user marks an entry first and checks the seal afterwards. A remover takes the seal first, checks for marks
 * afterwards, and puts the seal back if there is one. So paths in use stay valid. Files that a rank has mapped outlast
 * even a removal.
 */
import { randomUUID } from 'node:crypto';
import { open, readdir, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Interval at which a mark is touched. */
const RENEWED_MS = 60_000;
/** Age of a mark whose program has ended. */
const STALE_USE_MS = 600_000;
/** Age of a temporary directory whose program has ended. */
const STALE_TEMP_MS = 24 * 3600 * 1000;
/** Age at which unused entries are removed, regardless of the size. */
const UNUSED_MS = 30 * 24 * 3600 * 1000;

const SEAL = 'summary.json';

const markOf = (entry: string, name: string) => join(entry, `${name}.use`);

export const sealOf = (entry: string) => join(entry, SEAL);

/** Returns the path at which an entry is built. @param name id of its builder */
export function temporaryPath(entry: string, name: string): string {
  return `${entry}.${name}.tmp`;
}

/** Marks an entry as used. Returns false when it does not exist. */
export async function markUse(entry: string, name: string): Promise<boolean> {
  return writeFile(markOf(entry, name), '').then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false;
      throw error;
    },
  );
}

/** Use marks that are renewed until `end`. */
export class CacheUse {
  private readonly marks: string[] = [];
  private readonly timer = setInterval(() => void this.renew(), RENEWED_MS);

  /** Takes over the mark of a user that has ended. */
  add(entry: string, name: string): void {
    this.marks.push(markOf(entry, name));
  }

  /** Returns false when an entry was removed in spite of its mark, for example by an operator. */
  async isThere(): Promise<boolean> {
    return Promise.all(this.marks.map((mark) => stat(mark))).then(
      () => true,
      () => false,
    );
  }

  /** Removes the marks. Idempotent. */
  async end(): Promise<void> {
    clearInterval(this.timer);
    await Promise.all(this.marks.map((mark) => rm(mark, { force: true })));
  }

  private async renew(): Promise<void> {
    const now = new Date();
    await Promise.all(this.marks.map((mark) => utimes(mark, now, now).catch(() => undefined)));
  }
}

/**
 * Moves a complete directory into place as an entry. An existing complete entry stays; the files of an incomplete one
 * are replaced, the seal last. The directory is gone afterwards.
 * @param isWhole returns whether a directory is complete
 */
export async function putEntry(
  made: string,
  entry: string,
  isWhole: (directory: string) => Promise<boolean>,
): Promise<void> {
  if (!(await renameIfFree(made, entry))) {
    if (!(await isWhole(entry))) await repair(made, entry);
    await rm(made, { recursive: true, force: true });
  }
  await syncDirectory(join(entry, '..'));
}

async function repair(made: string, entry: string): Promise<void> {
  const isSeal = (name: string) => Number(name === SEAL);
  // If the entry was removed meanwhile, its next user builds it again.
  for (const name of (await namesIn(made)).sort((a, b) => isSeal(a) - isSeal(b)))
    await ignoreMissing(rename(join(made, name), join(entry, name)));
}

/** Removes the temporary directory of a builder that was killed. */
export async function removeTemporary(cache: string, name: string): Promise<void> {
  for (const file of await namesIn(cache))
    if (file.endsWith(`.${name}.tmp`)) await rm(join(cache, file), { recursive: true, force: true });
}

/**
 * Removes unused entries: first those that are too old, then the least recently used, until at most `max_bytes` are
 * left. A failed removal is retried by the next call.
 */
export async function evict(cache: string, maxBytes: number): Promise<void> {
  const now = Date.now();
  const found = await Promise.all((await namesIn(cache)).map((name) => inspect(join(cache, name), now)));
  const parts = found.filter((part) => part !== null).sort((a, b) => a.used_at - b.used_at);
  let bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
  for (const part of parts) {
    const overdue = now - part.used_at >= (part.temporary ? STALE_TEMP_MS : UNUSED_MS);
    const unaffordable = !part.temporary && bytes > maxBytes;
    if (part.used || !(overdue || unaffordable)) continue;
    const removing = part.temporary ? removeAll(part.path) : remove(part.path, now);
    if (await removing.catch(() => false)) bytes -= part.bytes;
  }
}

interface Part {
  path: string;
  temporary: boolean;
  bytes: number;
  /** Time of the last change of a mark for an entry, of the last write for a temporary directory. */
  used_at: number;
  used: boolean;
}

/** Inspects a path. Returns null if it is gone or is no directory. */
async function inspect(path: string, now: number): Promise<Part | null> {
  const directory = await stat(path).catch(() => null);
  if (!directory?.isDirectory()) return null;
  const temporary = path.endsWith('.tmp');
  const part: Part = { path, temporary, bytes: 0, used_at: directory.mtimeMs, used: false };
  for (const name of await namesIn(path)) {
    const file = await stat(join(path, name)).catch(() => null);
    if (!file) continue;
    part.bytes += file.size;
    if (temporary) part.used_at = Math.max(part.used_at, file.mtimeMs);
    else if (name.endsWith('.use') && now - file.mtimeMs < STALE_USE_MS) part.used = true;
  }
  return part;
}

/** Removes an entry unless it is in use. Returns false when it stays. */
async function remove(entry: string, now: number): Promise<boolean> {
  const isUsed = async (directory: string) => (await inspect(directory, now))?.used ?? false;
  const removedSeal = `${sealOf(entry)}.${randomUUID()}`;
  await ignoreMissing(rename(sealOf(entry), removedSeal));
  if (await isUsed(entry)) {
    await ignoreMissing(rename(removedSeal, sealOf(entry)));
    return false;
  }
  const removed = temporaryPath(entry, randomUUID());
  await ignoreMissing(rename(entry, removed));
  // A new user that marked it meanwhile misses the seal and may be about to replace the files.
  if ((await isUsed(removed)) && (await renameIfFree(removed, entry))) return false;
  return removeAll(removed);
}

async function removeAll(directory: string): Promise<true> {
  await rm(directory, { recursive: true, force: true });
  return true;
}

async function ignoreMissing(change: Promise<void>): Promise<void> {
  await change.catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
}

/** Renames a directory. Returns false when the target exists. */
async function renameIfFree(from: string, to: string): Promise<boolean> {
  return rename(from, to).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOTEMPTY' || error.code === 'EEXIST') return false;
      throw error;
    },
  );
}

async function namesIn(directory: string): Promise<string[]> {
  return readdir(directory).catch(() => []);
}

/** Makes a rename durable: it is durable only once its directory is synced. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
