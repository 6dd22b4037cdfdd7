import { createHash, type Hash } from 'node:crypto';
import type { SafetensorsHeader } from '../../platform/safetensors/header.js';
import {
  parseSafetensorsHeader,
  type SafetensorsFile,
  safetensorsHeaderBytes,
} from '../../platform/safetensors/read-header.js';
import { mayBeTied, type WeightsHeader } from './tensors.js';

const LENGTH_BYTES = 8;

/** Reads a safetensors file on its way to the object store: its header, and digests of the tensors that may be tied. */
export class WeightsScan {
  private header: SafetensorsHeader | null = null;
  private watched: { name: string; begin: number; end: number; hash: Hash }[] = [];
  /** Of the file, before the next piece. */
  private position = 0;

  /** @param onHeader gets the header before any piece is passed on; what it throws ends the file */
  constructor(
    private readonly file: Required<SafetensorsFile>,
    private readonly onHeader: (header: SafetensorsHeader) => void,
  ) {}

  /**
   * The same bytes, once the header among them is checked.
   * @throws ZerofleetError `safetensors_invalid`; what `onHeader` throws
   */
  async *pieces(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let start: Buffer | null = Buffer.alloc(0);
    let held: Uint8Array[] = [];
    let held_bytes = 0;
    let wanted = LENGTH_BYTES;
    for await (const piece of content) {
      if (start === null) {
        yield this.digested(piece);
        continue;
      }
      held.push(piece);
      held_bytes += piece.length;
      if (held_bytes < wanted) continue;
      start = Buffer.concat(held);
      held = [start];
      wanted = safetensorsHeaderBytes(start, this.file);
      if (start.length < wanted) continue;
      this.take(start);
      yield this.digested(start);
      start = null;
    }
    if (start !== null) this.take(Buffer.concat(held));
  }

  /** After the last piece. */
  result(file: string): WeightsHeader {
    if (this.header === null) throw new Error(`${file} was not read`);
    const digests = new Map(this.watched.map(({ name, hash }) => [name, hash.digest('hex')]));
    return { file, header: this.header, digests };
  }

  private take(start: Buffer): void {
    const header = parseSafetensorsHeader(start, this.file);
    this.header = header;
    this.onHeader(header);
    this.watched = header.tensors
      .filter(({ name }) => mayBeTied(name))
      .map(({ name, dtype, begin, end }) => ({
        name,
        begin: header.bytes + begin,
        end: header.bytes + end,
        hash: createHash('sha256').update(`${dtype} `),
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
