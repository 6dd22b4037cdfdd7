import { constants } from 'node:fs';
import { DIRECT_WRITE_BYTES } from '../common/port.js';
import { isCode } from './errors.js';
import type { FileHandle, FileSystem } from './file-system.js';

/** Minimum length that is worth a second open. */
const MIN_BYTES = 1024 * 1024;
/** Length of one call. */
const CALL_BYTES = 8 * 1024 * 1024;
/** Concurrent calls, so that the disk has the next one while the event loop is busy. */
const PARALLEL_CALLS = 2;

/**
 * Writes long pieces of a file with O_DIRECT, straight from their memory. Otherwise the kernel copies every
 * byte into newly allocated pages, which can take longer than the disk.
 */
export class DirectWriter {
  /** Null if not supported. */
  private file: FileHandle | null | undefined = constants.O_DIRECT === undefined ? null : undefined;

  constructor(
    private readonly fs: FileSystem,
    private readonly path: string,
  ) {}

  /**
   * Writes as much of the beginning of a piece as possible, possibly nothing, depending on the disk, the file
   * system and the alignment of the bytes. Afterwards the bytes are not accessed any more.
   * @param position in the file, of the first byte
   * @returns the number of bytes written
   */
  async write(piece: Uint8Array, position: number): Promise<number> {
    if (piece.length < MIN_BYTES || position % DIRECT_WRITE_BYTES !== 0) return 0;
    const file = await this.open();
    if (!file) return 0;
    const bytes = piece.length - (piece.length % DIRECT_WRITE_BYTES);
    const starts = startsOf(bytes);
    const lane = async () => {
      for (const at of starts) {
        await writeAll(file, piece.subarray(at, Math.min(bytes, at + CALL_BYTES)), position + at);
      }
    };
    const lanes = await Promise.allSettled(Array.from({ length: PARALLEL_CALLS }, lane));
    const failed = lanes.find((ended) => ended.status === 'rejected');
    if (!failed) return bytes;
    if (isNotPossible(failed.reason)) return 0;
    throw failed.reason;
  }

  async close(): Promise<void> {
    await this.file?.close();
  }

  private async open(): Promise<FileHandle | null> {
    if (this.file !== undefined) return this.file;
    try {
      this.file = await this.fs.open(this.path, constants.O_WRONLY | constants.O_DIRECT);
    } catch (error) {
      if (!isNotPossible(error)) throw error;
      this.file = null;
    }
    return this.file;
  }
}

/** Writes all bytes; one system call may write fewer. */
export async function writeAll(file: FileHandle, piece: Uint8Array, position: number): Promise<void> {
  for (let offset = 0; offset < piece.length; ) {
    const { bytesWritten } = await file.write(piece, offset, piece.length - offset, position + offset);
    offset += bytesWritten;
  }
}

function* startsOf(bytes: number): Generator<number> {
  for (let at = 0; at < bytes; at += CALL_BYTES) yield at;
}

/** Returns whether an error means that direct writes are not supported for a file or these bytes. */
function isNotPossible(error: unknown): boolean {
  return isCode(error, 'EINVAL', 'EOPNOTSUPP', 'ENOTSUP');
}
