import { once } from 'node:events';
import tar from 'tar-stream';
import { ZerofleetError } from '../../contracts/index.js';

/** A file of an archive. Its content must be read to the end before the next file. */
export interface ArchiveFile {
  /** Path segments; none of them is empty, `.` or `..`. */
  path: string[];
  /** Content length from the archive header. */
  bytes: number;
  content: AsyncIterable<Uint8Array>;
}

/** Maximum piece passed to the parser; the parser may be ahead of the accounting by this much. */
const PIECE_BYTES = 64 * 1024;
/** Maximum headers, long names and padding of one file. */
const OVERHEAD_BYTES = 64 * 1024;

/**
 * Yields the regular files of a tar archive while it arrives. Only the current piece is in memory.
 *
 * @param limit maximum size of the archive, in bytes
 * @throws (while it is read) ZerofleetError `model_archive_invalid`, `model_too_large`; errors of the body
 */
export async function* archiveFiles(
  body: AsyncIterable<Uint8Array>,
  limit: number,
): AsyncGenerator<ArchiveFile> {
  const extract = tar.extract();
  const account = new Account(limit);
  const pumped = pump(body, extract, account);
  // The loop below throws the same error; until then this promise must not count as unhandled.
  pumped.catch(() => undefined);
  try {
    for await (const entry of extract) {
      account.entryBegins();
      const { name, type, size = 0 } = entry.header;
      if (!(Number.isSafeInteger(size) && size >= 0)) throw invalid(`${shown(name)} has an invalid size`);
      const content = counted(entry, account);
      if (isFile(name, type)) yield { path: checkedPath(name), bytes: size, content };
      for await (const _ of content);
    }
    await pumped;
  } catch (error) {
    throw asArchiveError(error);
  } finally {
    extract.destroy();
  }
}

/** True for a file, false for a folder. @throws ZerofleetError for any other entry */
function isFile(name: string, type: string | null | undefined): boolean {
  if (type === 'file' || type === 'contiguous-file') return true;
  if (type === 'directory') return false;
  throw invalid(
    `${shown(name)} is a ${type ?? 'entry of an unknown kind'}; ` +
      'only files and folders are allowed (tar -h follows links when it creates an archive)',
  );
}

function checkedPath(name: string): string[] {
  const path = name.split('/').filter((part) => part !== '.' && part !== '');
  const leavesFolder = name.startsWith('/') || path.includes('..') || path.length === 0;
  if (leavesFolder || name.includes('\\') || name.includes('\0'))
    throw invalid(`${shown(name)} is not a relative path of a file`);
  return path;
}

/** Writes the body into the parser with backpressure. */
async function pump(body: AsyncIterable<Uint8Array>, extract: tar.Extract, account: Account): Promise<void> {
  const gone = new AbortController();
  extract.once('close', () => gone.abort());
  try {
    for await (const piece of body) {
      for (let at = 0; at < piece.length; at += PIECE_BYTES) {
        const part = piece.subarray(at, at + PIECE_BYTES);
        account.arrived(part.length);
        if (gone.signal.aborted) return;
        if (!extract.write(part)) await once(extract, 'drain', { signal: gone.signal });
      }
    }
    extract.end();
  } catch (error) {
    if (!gone.signal.aborted) extract.destroy(error as Error);
  }
}

async function* counted(content: AsyncIterable<Uint8Array>, account: Account): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of content) {
      account.used(piece.length);
      yield piece;
    }
  } catch (error) {
    throw asArchiveError(error);
  }
}

/**
 * Compares received bytes with content bytes. The parser collects long names of any declared length in memory: too many
 * bytes without content end the upload.
 */
class Account {
  private total = 0;
  private unexplained = 0;

  constructor(private readonly limit: number) {}

  arrived(bytes: number): void {
    this.total += bytes;
    this.unexplained += bytes;
    if (this.total > this.limit) throw tooLarge(this.limit);
    if (this.unexplained > 16 * OVERHEAD_BYTES) throw invalid('it has a megabyte outside of any file');
  }

  entryBegins(): void {
    this.unexplained = Math.max(0, this.unexplained - OVERHEAD_BYTES);
  }

  used(bytes: number): void {
    this.unexplained = Math.max(0, this.unexplained - bytes);
  }
}

export function tooLarge(limit: number): ZerofleetError {
  return new ZerofleetError('model_too_large', `the archive of a model may have at most ${limit} bytes`, {
    details: { limit },
  });
}

function invalid(problem: string): ZerofleetError {
  return new ZerofleetError('model_archive_invalid', `the archive can't be read: ${problem}`);
}

/** Converts the parser's errors, which describe faults of the archive. */
function asArchiveError(error: unknown): unknown {
  return error instanceof ZerofleetError ? error : invalid((error as Error).message);
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, 200));
}
