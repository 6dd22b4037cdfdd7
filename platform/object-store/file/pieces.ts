import { rangeError } from '../common/keys.js';
import type { ByteRange } from '../common/port.js';
import { memoryFor } from '../memory.js';
import { type DirectWriter, writeAll } from './direct-write.js';
import { fileError } from './errors.js';
import type { FileHandle } from './file-system.js';

const READ_PIECE_BYTES = 1024 * 1024;
/** Minimum of written bytes between two flushes to disk. */
const FLUSH_BYTES = 32 * 1024 * 1024;
/** Length of one call, long enough that a busy event loop does not delay the next one. */
const CALL_BYTES = 32 * 1024 * 1024;

/**
 * Writes all pieces to stable storage.
 * @returns the number of bytes
 */
export async function writePieces(file: FileHandle, pieces: AsyncIterable<Uint8Array>): Promise<number> {
  return flushed(file, async (flusher) => {
    let bytes = 0;
    for await (const piece of pieces) {
      await writeAll(file, piece, bytes);
      bytes += piece.length;
      flusher.wrote(piece.length);
    }
    return bytes;
  });
}

/**
 * Writes stable pieces to stable storage.
 * @param direct writes the beginning of long pieces with O_DIRECT where possible
 * @returns the number of bytes
 */
export async function writeStable(
  file: FileHandle,
  pieces: readonly Uint8Array[],
  direct: DirectWriter,
): Promise<number> {
  return flushed(file, async (flusher) => {
    let bytes = 0;
    for (const piece of pieces) {
      for (let at = await direct.write(piece, bytes); at < piece.length; at += CALL_BYTES) {
        const part = piece.subarray(at, at + CALL_BYTES);
        await writeAll(file, part, bytes + at);
        flusher.wrote(part.length);
      }
      bytes += piece.length;
    }
    return bytes;
  });
}

/** Runs `write` and returns when everything is on stable storage. */
async function flushed(file: FileHandle, write: (flusher: Flusher) => Promise<number>): Promise<number> {
  const flusher = new Flusher(file);
  let bytes: number;
  try {
    bytes = await write(flusher);
  } finally {
    await flusher.idle();
  }
  await file.sync();
  return bytes;
}

/** Flushes written bytes to the disk while further bytes arrive, so that the final sync is short. */
class Flusher {
  private waiting = 0;
  private isFlushing = false;
  // Sequential, and none after a failure: the kernel reports a lost write only once.
  private flushes = Promise.resolve();

  constructor(private readonly file: FileHandle) {}

  wrote(bytes: number): void {
    this.waiting += bytes;
    if (this.isFlushing || this.waiting < FLUSH_BYTES) return;
    this.isFlushing = true;
    this.waiting = 0;
    this.flushes = this.flushes.then(async () => {
      await this.file.datasync();
      this.isFlushing = false;
    });
    // The awaiting caller sees the error; this handler keeps an earlier rejection from ending the process.
    this.flushes.catch(() => undefined);
  }

  /** @throws the error of a flush */
  idle(): Promise<void> {
    return this.flushes;
  }
}

/** Reads a range, into the given memory if it is long enough, and always closes the file. */
export async function readWhole(
  file: FileHandle,
  key: string,
  range: ByteRange,
  into?: Buffer,
): Promise<Buffer> {
  try {
    const whole = memoryFor(range.end - range.begin, into);
    for (let held = 0; held < whole.length; ) {
      const position = range.begin + held;
      const { bytesRead } = await file.read(whole, held, whole.length - held, position);
      if (bytesRead === 0) throw rangeError(key, range, position);
      held += bytesRead;
    }
    return whole;
  } catch (error) {
    throw fileError(error, key, 'object_not_found');
  } finally {
    await file.close();
  }
}

/** Streams a range and always closes the file. For `startGenerator`. */
export async function* readPieces(
  file: FileHandle,
  key: string,
  range: ByteRange,
): AsyncGenerator<Uint8Array> {
  try {
    yield new Uint8Array();
    for (let position = range.begin; position < range.end; ) {
      const wanted = Math.min(READ_PIECE_BYTES, range.end - position);
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(wanted), 0, wanted, position);
      if (bytesRead === 0) throw rangeError(key, range, position);
      yield buffer.subarray(0, bytesRead);
      position += bytesRead;
    }
  } catch (error) {
    throw fileError(error, key, 'object_not_found');
  } finally {
    await file.close();
  }
}
