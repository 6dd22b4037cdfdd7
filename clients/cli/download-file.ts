import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { constants, type FileHandle, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError } from '../typescript/index.js';
import { CliError, EXIT } from './context.js';

/** Opens a file at a byte offset; `again`: the previous URL may have expired. */
export type FetchFile = (name: string, from: number, again: boolean) => Promise<ReadableStream<Uint8Array>>;

export interface FileDownload {
  path: string;
  /** Name for the server and for messages. */
  name: string;
  bytes: number;
  sha256: string;
  fetchFile: FetchFile;
  /** Called with received bytes; negative when received bytes are discarded. */
  onBytes(count: number): void;
  signal: AbortSignal;
}

/** Consecutive attempts without progress before giving up. */
const MAX_ATTEMPTS_WITHOUT_PROGRESS = 5;
const PAUSE_MS = 500;
const SEGMENT = /^[A-Za-z0-9_=-][A-Za-z0-9._=-]*$/;

/**
 * Downloads one file. It gets its name when it is complete and its SHA-256 matches; until then it is `<name>.part`,
 * which the next call continues.
 * @returns the name
 * @throws CliError for wrong content
 */
export async function downloadFile(file: FileDownload): Promise<string> {
  const { path } = file;
  if (await isWhole(path, file)) {
    file.onBytes(file.bytes);
    return file.name;
  }
  await mkdir(dirname(path), { recursive: true });
  const part = `${path}.part`;
  // The part of an earlier call may belong to other content: then the file is downloaded once more.
  const isRight = (await fetchPart(part, file)) || (await fetchPart(part, file));
  if (!isRight) throw new CliError(`${file.name}: its SHA-256 does not match`, EXIT.failed);
  await rename(part, path);
  return file.name;
}

/** Resolves a server-provided name to a path below `dir`. @throws CliError for any other path */
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

/** Completes the part. Returns false and removes it if its content is wrong. */
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
  for (let failedAttempts = 0; at < file.bytes; failedAttempts += 1) {
    const before = at;
    try {
      for await (const piece of await file.fetchFile(file.name, at, failedAttempts > 0)) {
        await handle.write(piece);
        hash.update(piece);
        at += piece.length;
        file.onBytes(piece.length);
        // Never write more than the announced size.
        if (at > file.bytes) return at;
      }
    } catch (error) {
      if (file.signal.aborted || isRefusal(error) || failedAttempts + 1 >= MAX_ATTEMPTS_WITHOUT_PROGRESS)
        throw error;
    }
    if (at > before) failedAttempts = -1;
    else if (failedAttempts + 1 >= MAX_ATTEMPTS_WITHOUT_PROGRESS)
      throw new CliError(`${file.name}: the server ends it at byte ${at} of ${file.bytes}`, EXIT.failed);
    if (at < file.bytes) await sleep(PAUSE_MS, undefined, { signal: file.signal });
  }
  return at;
}

/** True if the API refuses with a reason; 403 without one means an expired presigned URL. */
function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && error.problem !== null && error.status < 500;
}
