import { once } from 'node:events';
import tar from 'tar-stream';
import { ZerofleetError } from '../../contracts/index.js';

/** A file of an archive. Its content must be read to the end before the next file comes. */
export interface ArchiveFile {
  /** Folders and name, with `/` between them; none of them is empty, `.` or `..`. */
  path: string[];
  /** Length of the content, as the archive says. */
  bytes: number;
  content: AsyncIterable<Uint8Array>;
}

/** Longest piece that the parser gets at once; so much it may be ahead of what is accounted for. */
const PIECE_BYTES = 64 * 1024;
/** Headers, long names and padding that one file may have. */
const OVERHEAD_BYTES = 64 * 1024;

/**
 * The regular files of a tar archive, while it arrives. Nothing of it is held but the piece that is under way.
 *
 * @param limit largest archive, in bytes
 * @throws (while it is read) ZerofleetError `model_archive_invalid`, `model_too_large`; what the body throws
 */
export async function* archiveFiles(
  body: AsyncIterable<Uint8Array>,
  limit: number,
): AsyncGenerator<ArchiveFile> {
  const extract = tar.extract();
  const account = new Account(limit);
  const pumped = pump(body, extract, account);
  // The loop below ends with the same error; this one must not count as unhandled until it does.
  pumped.catch(() => undefined);
  try {
    for await (const entry of extract) {
      account.entryBegins();
      const { name, type, size = 0 } = entry.header;
      if (!(Number.isSafeInteger(size) && size >= 0))
        throw invalid(`${shown(name)} has no size that a file can have`);
      const content = counted(entry, account);
      if (isFile(name, type)) yield { path: checkedPath(name), bytes: size, content };
      for await (const _ of content);
    }
    await pumped;
  } catch (error) {
    throw asOurs(error);
  } finally {
    extract.destroy();
  }
}

/** Whether it is a file. @throws ZerofleetError for what is neither file nor folder */
function isFile(name: string, type: string | null | undefined): boolean {
  if (type === 'file' || type === 'contiguous-file') return true;
  if (type === 'directory') return false;
  throw invalid(
    `${shown(name)} is a ${type ?? 'thing of an unknown kind'}; ` +
      'only files and folders are read (tar -h follows links when it makes an archive)',
  );
}

function checkedPath(name: string): string[] {
  const path = name.split('/').filter((part) => part !== '.' && part !== '');
  const climbs = name.startsWith('/') || path.includes('..') || path.length === 0;
  if (climbs || name.includes('\\') || name.includes('\0'))
    throw invalid(`${shown(name)} is no relative path of a file`);
  return path;
}

/** Writes the body into the parser, no faster than it is read. */
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
    throw asOurs(error);
  }
}

/**
 * Compares what arrived with what became content. The parser collects long names in memory, however long the archive says
 * that they are: bytes of which nothing came out end the upload instead.
 */
class Account {
  private total = 0;
  private unexplained = 0;

  constructor(private readonly limit: number) {}

  arrived(bytes: number): void {
    this.total += bytes;
    this.unexplained += bytes;
    if (this.total > this.limit) throw tooLarge(this.limit);
    if (this.unexplained > 16 * OVERHEAD_BYTES) throw invalid('it has a megabyte that belongs to no file');
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

/** The parser's own errors say what is wrong with the archive. */
function asOurs(error: unknown): unknown {
  return error instanceof ZerofleetError ? error : invalid((error as Error).message);
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, 200));
}
