import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { constants, type FileHandle, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError } from '../client/index.js';
import { CliError, EXIT } from './context.js';

/** Opens a file from a byte on; `again`: what was known of where it is may no longer be good. */
export type FetchFile = (name: string, from: number, again: boolean) => Promise<ReadableStream<Uint8Array>>;

export interface FileDownload {
  path: string;
  /** For the server and in messages. */
  name: string;
  bytes: number;
  sha256: string;
  fetchFile: FetchFile;
  /** Bytes that are there now and were not before; negative when they are thrown away. */
  onBytes(count: number): void;
  signal: AbortSignal;
}

/** Tries of a file in a row that bring no byte. */
const FRUITLESS_TRIES = 5;
const PAUSE_MS = 500;
const SEGMENT = /^[A-Za-z0-9_=-][A-Za-z0-9._=-]*$/;

/**
 * Fetches one file. It has its name only when it is whole and its SHA-256 is right; until then it is `<name>.part`,
 * at which the next call goes on.
 * @returns the name
 * @throws CliError for content that is not what it should be
 */
export async function downloadFile(file: FileDownload): Promise<string> {
  const { path } = file;
  if (await isWhole(path, file)) {
    file.onBytes(file.bytes);
    return file.name;
  }
  await mkdir(dirname(path), { recursive: true });
  const part = `${path}.part`;
  // What a former call has left may be of something else: then everything is fetched once more.
  const is_right = (await fetchPart(part, file)) || (await fetchPart(part, file));
  if (!is_right)
    throw new CliError(`${file.name}: its SHA-256 is not the one that it should have`, EXIT.failed);
  await rename(part, path);
  return file.name;
}

/** Names come from the server, and nothing but files below `dir` may be written. @throws CliError */
export function pathIn(dir: string, name: string): string {
  const segments = name.split('/');
  if (segments.every((segment) => SEGMENT.test(segment))) return join(dir, ...segments);
  throw new CliError(
    `the server names a file that can't be written here: ${JSON.stringify(name)}`,
    EXIT.failed,
  );
}

async function isWhole(path: string, { bytes, sha256 }: FileDownload): Promise<boolean> {
  const found = await stat(path).catch(() => null);
  if (!found?.isFile() || found.size !== bytes) return false;
  return (await hashOf(path)).digest('hex') === sha256;
}

async function hashOf(path: string): Promise<Hash> {
  const hash = createHash('sha256');
  for await (const piece of createReadStream(path)) hash.update(piece as Buffer);
  return hash;
}

/** Brings the part to its full length. False when its content is wrong; it is gone then. */
async function fetchPart(part: string, file: FileDownload): Promise<boolean> {
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants;
  const handle = await open(part, O_APPEND | O_CREAT | O_NOFOLLOW | O_WRONLY, 0o666);
  let at = (await handle.stat()).size;
  try {
    if (at > file.bytes) {
      await handle.truncate(0);
      at = 0;
    }
    const hash = at > 0 ? await hashOf(part) : createHash('sha256');
    file.onBytes(at);
    at = await appendRest(handle, hash, at, file);
    await handle.sync();
    if (at === file.bytes && hash.digest('hex') === file.sha256) return true;
  } finally {
    await handle.close();
  }
  file.onBytes(-at);
  await rm(part, { force: true });
  return false;
}

async function appendRest(handle: FileHandle, hash: Hash, from: number, file: FileDownload): Promise<number> {
  let at = from;
  for (let fruitless = 0; at < file.bytes; fruitless += 1) {
    const before = at;
    try {
      for await (const piece of await file.fetchFile(file.name, at, fruitless > 0)) {
        await handle.write(piece);
        hash.update(piece);
        at += piece.length;
        file.onBytes(piece.length);
        // Whatever the server sends, no more than was said.
        if (at > file.bytes) return at;
      }
    } catch (error) {
      if (file.signal.aborted || isRefusal(error) || fruitless + 1 >= FRUITLESS_TRIES) throw error;
    }
    if (at > before) fruitless = -1;
    else if (fruitless + 1 >= FRUITLESS_TRIES)
      throw new CliError(`${file.name}: the server ends it at byte ${at} of ${file.bytes}`, EXIT.failed);
    if (at < file.bytes) await sleep(PAUSE_MS, undefined, { signal: file.signal });
  }
  return at;
}

/** The API says no, and why; 403 without a reason is that of a presigned URL that has run out. */
function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && error.problem !== null && error.status < 500;
}
