import { createHash } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import type { ParamRecord, ShardRecord, TensorRecord } from '../../contracts/rank-protocol.js';
import { STATE_NAMES } from '../../platform/checkpoint/manifest.js';
import { ChunkChecksums } from '../../platform/checkpoint/verify.js';
import { DIRECT_WRITE_BYTES, type ObjectStore } from '../../platform/object-store/index.js';
import { safetensorsHeader } from '../../platform/safetensors/header.js';
import type { SnapshotSlice } from '../native/adapter.js';

/** Bytes that are hashed at once; the event loop gets its turn between them. */
const HASH_BYTES = 1024 * 1024;

/**
 * One rank's shard: a safetensors file of 1-D slices, state by state, in canonical parameter order. The file's metadata
 * says which elements of its parameter each tensor holds, as `begin:end`.
 */
export class Shard {
  private readonly header: Buffer;
  private readonly slices: SnapshotSlice[];
  private readonly tensors: TensorRecord[];
  /** Once made they hold for every further try. */
  private sums: Promise<Pick<ShardRecord, 'sha256' | 'crc32c'>> | null = null;

  constructor(
    private readonly file: string,
    params: readonly ParamRecord[],
    slices: readonly SnapshotSlice[],
  ) {
    this.slices = inFileOrder(slices);
    const entries = layOut(this.slices, params);
    const metadata: Record<string, string> = {};
    for (const { name, slice } of entries) metadata[name] = `${slice.begin}:${slice.end}`;
    this.header = safetensorsHeader(
      entries.map(({ slice, name, begin, end }) => ({
        name,
        dtype: 'F32' as const,
        shape: [slice.end - slice.begin],
        begin,
        end,
      })),
      metadata,
      DIRECT_WRITE_BYTES,
    );
    this.tensors = entries.map(({ slice, param, begin, end }) => ({
      state: slice.state,
      param,
      element_begin: slice.begin,
      element_end: slice.end,
      byte_begin: this.header.length + begin,
      byte_end: this.header.length + end,
    }));
  }

  /**
   * Puts the shard into the object store while its checksums are made. May be called again after an error: the bytes are still there.
   * However it ends, nothing reads the bytes any more.
   */
  async putTo(objects: ObjectStore, directory: string): Promise<ShardRecord> {
    this.sums ??= this.checksums();
    const put = objects.put(`${directory}/${this.file}`, this.parts);
    const [stored, summed] = await Promise.allSettled([put, this.sums]);
    if (stored.status === 'rejected') throw stored.reason;
    if (summed.status === 'rejected') throw summed.reason;
    return { file: this.file, bytes: stored.value.bytes, ...summed.value, tensors: this.tensors };
  }

  private async checksums(): Promise<Pick<ShardRecord, 'sha256' | 'crc32c'>> {
    const sha256 = createHash('sha256');
    const chunks = new ChunkChecksums();
    for (const part of this.parts) {
      for (let at = 0; at < part.length; at += HASH_BYTES) {
        const piece = part.subarray(at, at + HASH_BYTES);
        sha256.update(piece);
        chunks.add(piece);
        await turn();
      }
    }
    return { sha256: sha256.digest('hex'), crc32c: chunks.finish() };
  }

  /** The bytes of the file. */
  private get parts(): Uint8Array[] {
    return [this.header, ...this.slices.map(({ data }) => data)];
  }
}

function inFileOrder(slices: readonly SnapshotSlice[]): SnapshotSlice[] {
  const order = (slice: SnapshotSlice) => STATE_NAMES.indexOf(slice.state);
  return [...slices].sort((a, b) => order(a) - order(b) || a.param - b.param || a.begin - b.begin);
}

/** A slice at bytes [begin, end) after the header. */
interface Entry {
  slice: SnapshotSlice;
  param: string;
  /** `master/<param>`; a rank may own several pieces of one parameter, the later ones get a number. */
  name: string;
  begin: number;
  end: number;
}

function layOut(slices: readonly SnapshotSlice[], params: readonly ParamRecord[]): Entry[] {
  const pieces = new Map<string, number>();
  let begin = 0;
  return slices.map((slice) => {
    const param = params[slice.param]?.name;
    if (param === undefined) throw new Error(`the core has no parameter ${slice.param}`);
    const plain = `${slice.state}/${param}`;
    const number = pieces.get(plain) ?? 0;
    pieces.set(plain, number + 1);
    const end = begin + slice.data.length;
    const entry = { slice, param, name: number === 0 ? plain : `${plain}#${number}`, begin, end };
    begin = end;
    return entry;
  });
}
