import { createHash } from 'node:crypto';
import { crc32c } from '@node-rs/crc32';
import type { ParamRecord, ShardRecord, TensorRecord } from '../../contracts/rank-protocol.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import { CHUNK_BYTES } from '../checkpoint/chunks.js';
import { STATE_NAMES } from '../checkpoint/coverage.js';
import { safetensorsHeader } from '../checkpoint/format/safetensors.js';
import { hexCrc } from '../checkpoint/read-manifest.js';
import type { SnapshotSlice } from '../native/adapter.js';

/** Bytes that are handed on at once; the event loop gets its turn between them. */
const PIECE_BYTES = 1024 * 1024;

/** One rank's shard: a safetensors file of 1-D slices, state by state, in canonical parameter order. */
export class Shard {
  private readonly header: Buffer;
  private readonly slices: SnapshotSlice[];
  private readonly tensors: TensorRecord[] = [];

  constructor(
    private readonly file: string,
    params: readonly ParamRecord[],
    slices: readonly SnapshotSlice[],
  ) {
    this.slices = inFileOrder(slices);
    let begin = 0;
    const entries = this.slices.map((slice) => {
      const param = params[slice.param];
      if (!param) throw new Error(`the core has no parameter ${slice.param}`);
      const end = begin + slice.data.length;
      const entry = { slice, name: param.name, begin, end };
      begin = end;
      return entry;
    });
    this.header = safetensorsHeader(
      entries.map(({ slice, name, begin, end }) => ({
        name: tensorName(slice, name),
        dtype: 'F32' as const,
        shape: [slice.end - slice.begin],
        begin,
        end,
      })),
      { format: 'pt' },
    );
    this.tensors = entries.map(({ slice, name, begin, end }) => ({
      state: slice.state,
      param: name,
      element_begin: slice.begin,
      element_end: slice.end,
      byte_begin: this.header.length + begin,
      byte_end: this.header.length + end,
    }));
  }

  /** Streams the shard to the object store. May be called again after an error: the bytes are still there. */
  async putTo(objects: ObjectStore, directory: string): Promise<ShardRecord> {
    const sums = new Checksums();
    const body = this.body(sums);
    const { bytes } = await objects.put(`${directory}/${this.file}`, body);
    return { file: this.file, bytes, ...sums.finish(), tensors: this.tensors };
  }

  private async *body(sums: Checksums): AsyncGenerator<Uint8Array> {
    for (const part of [this.header, ...this.slices.map((slice) => slice.data)]) {
      for (let at = 0; at < part.length; at += PIECE_BYTES) {
        const piece = part.subarray(at, at + PIECE_BYTES);
        sums.add(piece);
        yield piece;
      }
    }
  }
}

/** SHA-256 of all bytes and CRC32C of each chunk, computed while the bytes pass by. */
class Checksums {
  private readonly sha256 = createHash('sha256');
  private readonly chunks: string[] = [];
  private crc = 0;
  private in_chunk = 0;

  add(piece: Uint8Array): void {
    this.sha256.update(piece);
    for (let at = 0; at < piece.length; ) {
      const end = Math.min(piece.length, at + CHUNK_BYTES - this.in_chunk);
      this.crc = crc32c(Buffer.from(piece.buffer, piece.byteOffset + at, end - at), this.crc);
      this.in_chunk += end - at;
      at = end;
      if (this.in_chunk === CHUNK_BYTES) this.closeChunk();
    }
  }

  finish(): { sha256: string; crc32c: string[] } {
    if (this.in_chunk > 0) this.closeChunk();
    return { sha256: this.sha256.digest('hex'), crc32c: this.chunks };
  }

  private closeChunk(): void {
    this.chunks.push(hexCrc(this.crc));
    this.crc = 0;
    this.in_chunk = 0;
  }
}

function inFileOrder(slices: readonly SnapshotSlice[]): SnapshotSlice[] {
  const order = (slice: SnapshotSlice) => STATE_NAMES.indexOf(slice.state);
  return [...slices].sort((a, b) => order(a) - order(b) || a.param - b.param || a.begin - b.begin);
}

/** A rank may own several pieces of one parameter, and names must differ. */
function tensorName({ state, begin, end }: SnapshotSlice, param: string): string {
  return `${state}/${param}[${begin}:${end}]`;
}
