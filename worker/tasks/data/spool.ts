import { closeSync, openSync, readSync, rmSync, writeSync } from 'node:fs';

const BUFFER_BYTES = 1 << 16;

/** Appends all of `data` to the file of `fd`. */
export function writeWhole(fd: number, data: Uint8Array): void {
  for (let written = 0; written < data.length; ) written += writeSync(fd, data, written);
}

/** Reads `count` bytes of a file from `offset` on, which must exist. */
export function readWhole(fd: number, offset: number, count: number): Uint8Array {
  const bytes = new Uint8Array(count);
  for (let read = 0; read < count; ) {
    const more = readSync(fd, bytes, read, count - read, offset + read);
    if (more === 0) throw new Error('a file of prepared data is shorter than expected');
    read += more;
  }
  return bytes;
}

/**
 * Table that is collected in a temporary file and copied to the end of the token file, so that memory does not grow
 * with it. Calls are synchronous, because the process that prepares data does nothing else.
 */
export class Spool {
  private readonly fd: number;
  private readonly buffer = new Uint8Array(BUFFER_BYTES);
  private filled = 0;
  private written = 0;
  private closed = false;

  constructor(private readonly path: string) {
    this.fd = openSync(path, 'wx+');
  }

  get bytes(): number {
    return this.written + this.filled;
  }

  pushByte(byte: number): void {
    if (this.filled === BUFFER_BYTES) this.flush();
    this.buffer[this.filled++] = byte;
  }

  push(data: Uint8Array): void {
    if (this.filled + data.length > BUFFER_BYTES) this.flush();
    if (data.length > BUFFER_BYTES) {
      writeWhole(this.fd, data);
      this.written += data.length;
      return;
    }
    this.buffer.set(data, this.filled);
    this.filled += data.length;
  }

  /** Reads the table from its start, in pieces whose sizes are multiples of 8 except for the last. */
  *read(): Generator<Uint8Array> {
    this.flush();
    for (let offset = 0; offset < this.written; offset += BUFFER_BYTES)
      yield readWhole(this.fd, offset, Math.min(BUFFER_BYTES, this.written - offset));
  }

  /** Reads `count` bytes from `offset` on, which must have been pushed. */
  readAt(offset: number, count: number): Uint8Array {
    this.flush();
    return readWhole(this.fd, offset, count);
  }

  /** Idempotent. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    closeSync(this.fd);
    rmSync(this.path, { force: true });
  }

  private flush(): void {
    writeWhole(this.fd, this.buffer.subarray(0, this.filled));
    this.written += this.filled;
    this.filled = 0;
  }
}

/** Positions in a file, eight bytes each. */
export class PositionSpool {
  private readonly spool: Spool;
  private readonly bytes = new Uint8Array(8);
  private readonly view = new DataView(this.bytes.buffer);

  constructor(path: string) {
    this.spool = new Spool(path);
  }

  get count(): number {
    return this.spool.bytes / 8;
  }

  push(offset: number): void {
    this.view.setBigUint64(0, BigInt(offset), true);
    this.spool.push(this.bytes);
  }

  *positions(): Generator<number> {
    for (const piece of this.spool.read()) {
      const view = new DataView(piece.buffer, piece.byteOffset, piece.length);
      for (let at = 0; at < piece.length; at += 8) yield Number(view.getBigUint64(at, true));
    }
  }

  copyTo(fd: number): void {
    for (const piece of this.spool.read()) writeWhole(fd, piece);
  }

  close(): void {
    this.spool.close();
  }
}
