import { fileError } from './file-errors.js';
import type { FileHandle } from './file-system.js';
import { rangeError } from './keys.js';
import type { ByteRange } from './port.js';

const READ_PIECE_BYTES = 1024 * 1024;
/** Bytes that lie in the system's memory at least before they are sent to the disk. */
const FLUSH_BYTES = 32 * 1024 * 1024;

/**
 * Writes all pieces to stable storage. What was written goes to the disk while the next pieces come, so that the end has little left
 * to wait for.
 * @returns the number of bytes
 */
export async function writePieces(file: FileHandle, pieces: AsyncIterable<Uint8Array>): Promise<number> {
  let bytes = 0;
  let flushed = 0;
  let is_flushing = false;
  // One after the other, and none after one that failed: the system reports a lost write only once.
  let flushes = Promise.resolve();
  const flush = async () => {
    await file.datasync();
    is_flushing = false;
  };
  try {
    for await (const piece of pieces) {
      await writeAll(file, piece);
      bytes += piece.length;
      if (is_flushing || bytes - flushed < FLUSH_BYTES) continue;
      is_flushing = true;
      flushed = bytes;
      flushes = flushes.then(flush);
      // Whoever waits for it below sees the error; without this line it would end the process before.
      flushes.catch(() => undefined);
    }
  } finally {
    await flushes;
  }
  await file.sync();
  return bytes;
}

/** Writes all of it; one call of the system may write less. */
async function writeAll(file: FileHandle, piece: Uint8Array): Promise<void> {
  for (let offset = 0; offset < piece.length; ) {
    const { bytesWritten } = await file.write(piece, offset, piece.length - offset);
    offset += bytesWritten;
  }
}

/** Reads a range into memory of its own and closes the file at the end, however it comes. */
export async function readWhole(file: FileHandle, key: string, range: ByteRange): Promise<Buffer> {
  try {
    const whole = Buffer.allocUnsafeSlow(range.end - range.begin);
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

/** Reads a range piece by piece and closes the file at the end, however it comes. */
export async function* readPieces(
  file: FileHandle,
  key: string,
  range: ByteRange,
): AsyncGenerator<Uint8Array> {
  try {
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
