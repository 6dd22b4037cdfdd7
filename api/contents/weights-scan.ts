import { createHash, type Hash } from 'node:crypto';
import { LENGTH_BYTES } from '../../formats/safetensors/header.js';
import { type SafetensorsFile, safetensorsHeaderBytes } from '../../formats/safetensors/read-header.js';

/** Bytes `[begin, end)` of a file: the data of a tensor that needs a digest. */
export interface WatchedTensor {
  name: string;
  dtype: string;
  begin: number;
  end: number;
}

/**
 * Reads a safetensors file on its way to the object store: extracts its header and digests of the tensors that may be
 * tied.
 */
export class WeightsScan {
  private watched: (WatchedTensor & { hash: Hash })[] = [];
  /** File offset of the next piece. */
  private position = 0;

  /**
   * @param onHeader receives the first bytes of the file before any piece is passed on: length field and whole header,
   *   or the whole of a shorter file. It owns the bytes. An error thrown by it ends the file.
   */
  constructor(
    private readonly file: Required<SafetensorsFile>,
    private readonly onHeader: (start: Uint8Array) => Promise<readonly WatchedTensor[]>,
  ) {}

  /**
   * Yields the same bytes, once the header is checked. @throws ZerofleetError `safetensors_invalid`; errors of
   * `onHeader`
   */
  async *pieces(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const chunks: Uint8Array[] = [];
    let start = new Uint8Array(Math.min(LENGTH_BYTES, this.file.bytes));
    let filled = 0;
    let hasHeader = false;
    for await (const piece of content) {
      if (hasHeader) {
        yield this.digested(piece);
        continue;
      }
      chunks.push(piece);
      for (let used = 0; used < piece.length && filled < start.length; ) {
        const part = piece.subarray(used, used + start.length - filled);
        start.set(part, filled);
        filled += part.length;
        used += part.length;
        if (filled === LENGTH_BYTES && start.length === LENGTH_BYTES) start = this.room(start);
      }
      if (filled < start.length) continue;
      hasHeader = true;
      await this.take(start);
      for (const each of chunks.splice(0)) yield this.digested(each);
    }
    if (!hasHeader) await this.take(start.subarray(0, filled));
  }

  /** SHA-256 of the watched tensors by name, after the last piece. */
  digests(): [name: string, digest: string][] {
    return this.watched.map(({ name, hash }) => [name, hash.digest('hex')]);
  }

  /** Buffer for the whole header, including its length field. */
  private room(length: Uint8Array): Uint8Array<ArrayBuffer> {
    const start = new Uint8Array(safetensorsHeaderBytes(length, this.file));
    start.set(length);
    return start;
  }

  private async take(start: Uint8Array): Promise<void> {
    const watched = await this.onHeader(start);
    this.watched = watched.map((tensor) => ({
      ...tensor,
      hash: createHash('sha256').update(`${tensor.dtype} `),
    }));
  }

  private digested(piece: Uint8Array): Uint8Array {
    const { position } = this;
    this.position += piece.length;
    for (const { begin, end, hash } of this.watched) {
      const from = Math.max(0, begin - position);
      const to = Math.min(piece.length, end - position);
      if (from < to) hash.update(piece.subarray(from, to));
    }
    return piece;
  }
}
