/**
 * The directory in which a machine keeps prepared data. Any number of programs use it at once, and any of them may be killed.
 *
 *   <cache>/<entry>/…                  files that never change
 *   <cache>/<entry>/summary.json       one of them, which is there only when all of them are: the seal
 *   <cache>/<entry>/<name>.use         somebody uses it; touched again and again, and stale without
 *   <cache>/<entry>.<name>.tmp/…       what is being made, or removed
 *
 * Who wants an entry marks it first and looks for the seal afterwards. Who removes one takes the seal first, looks for marks afterwards,
 * and puts the seal back when there is one. So the paths that somebody was given stay. Files that a rank has mapped outlast even that.
 */
import { randomUUID } from 'node:crypto';
import { open, readdir, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A mark is touched so often. */
const RENEWED_MS = 60_000;
/** One that was not touched for so long was left by a program that is gone. */
const STALE_USE_MS = 600_000;
/** The same of what was being made or removed. */
const STALE_TEMP_MS = 24 * 3600 * 1000;
/** What nobody has used for so long goes, however much room there is. */
const UNUSED_MS = 30 * 24 * 3600 * 1000;

const SEAL = 'summary.json';

const markOf = (entry: string, name: string) => join(entry, `${name}.use`);

export const sealOf = (entry: string) => join(entry, SEAL);

/** Where something that becomes this entry is made. @param name of whoever makes it */
export function makingOf(entry: string, name: string): string {
  return `${entry}.${name}.tmp`;
}

/** Marks an entry as used. False when there is none. */
export async function markUse(entry: string, name: string): Promise<boolean> {
  return writeFile(markOf(entry, name), '').then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false;
      throw error;
    },
  );
}

/** A mark that is kept up until `end`. */
export class CacheUse {
  private readonly timer: NodeJS.Timeout;

  constructor(
    private readonly entry: string,
    private readonly name: string,
  ) {
    this.timer = setInterval(() => void this.renew(), RENEWED_MS);
  }

  /** False when somebody has removed the entry in spite of it, as a person does. */
  async isThere(): Promise<boolean> {
    return stat(markOf(this.entry, this.name)).then(
      () => true,
      () => false,
    );
  }

  /** Idempotent. */
  async end(): Promise<void> {
    clearInterval(this.timer);
    await rm(markOf(this.entry, this.name), { force: true });
  }

  private async renew(): Promise<void> {
    const now = new Date();
    await utimes(markOf(this.entry, this.name), now, now).catch(() => undefined);
  }
}

/**
 * Makes an entry of a directory that is complete and on disk. One that is there already stays; where it is not whole its files are
 * replaced, the seal last. The directory is gone afterwards.
 * @param isWhole whether a directory has what the entry has to have
 */
export async function putEntry(
  made: string,
  entry: string,
  isWhole: (directory: string) => Promise<boolean>,
): Promise<void> {
  if (!(await putInPlace(made, entry))) {
    if (!(await isWhole(entry))) await repair(made, entry);
    await rm(made, { recursive: true, force: true });
  }
  await syncDirectory(join(entry, '..'));
}

async function repair(made: string, entry: string): Promise<void> {
  const isSeal = (name: string) => Number(name === SEAL);
  // An entry that was removed meanwhile is made by whoever misses it.
  for (const name of (await namesIn(made)).sort((a, b) => isSeal(a) - isSeal(b)))
    await unlessGone(rename(join(made, name), join(entry, name)));
}

/** Removes what a maker that was killed has left. */
export async function removeMaking(cache: string, name: string): Promise<void> {
  for (const file of await namesIn(cache))
    if (file.endsWith(`.${name}.tmp`)) await rm(join(cache, file), { recursive: true, force: true });
}

/**
 * Removes entries that nobody uses: those that nobody has used for long, then those that were used longest ago, until all that is there
 * has at most so many bytes. What can't be removed stays for the next time.
 */
export async function evict(cache: string, max_bytes: number): Promise<void> {
  const now = Date.now();
  const found = await Promise.all((await namesIn(cache)).map((name) => look(join(cache, name), now)));
  const parts = found.filter((part) => part !== null).sort((a, b) => a.used_at - b.used_at);
  let bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
  for (const part of parts) {
    const overdue = now - part.used_at >= (part.temporary ? STALE_TEMP_MS : UNUSED_MS);
    const unaffordable = !part.temporary && bytes > max_bytes;
    if (part.used || !(overdue || unaffordable)) continue;
    const removing = part.temporary ? removeAll(part.path) : remove(part.path, now);
    if (await removing.catch(() => false)) bytes -= part.bytes;
  }
}

interface Part {
  path: string;
  temporary: boolean;
  bytes: number;
  /** Of an entry, when a mark came or went last; else when it was written to last. */
  used_at: number;
  used: boolean;
}

/** Null for what is gone, and for what is no directory. */
async function look(path: string, now: number): Promise<Part | null> {
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

/** Removes an entry, unless somebody uses it by now. False when it stays. */
async function remove(entry: string, now: number): Promise<boolean> {
  const isUsed = async (directory: string) => (await look(directory, now))?.used ?? false;
  const taken = `${sealOf(entry)}.${randomUUID()}`;
  await unlessGone(rename(sealOf(entry), taken));
  if (await isUsed(entry)) {
    await unlessGone(rename(taken, sealOf(entry)));
    return false;
  }
  const removed = makingOf(entry, randomUUID());
  await unlessGone(rename(entry, removed));
  // Somebody who has marked it since misses the seal, and may be about to replace the files.
  if ((await isUsed(removed)) && (await putInPlace(removed, entry))) return false;
  return removeAll(removed);
}

async function removeAll(directory: string): Promise<true> {
  await rm(directory, { recursive: true, force: true });
  return true;
}

async function unlessGone(change: Promise<void>): Promise<void> {
  await change.catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
}

/** Renames a directory. False when its new name is taken. */
async function putInPlace(from: string, to: string): Promise<boolean> {
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

/** A rename is durable only when its directory is. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
