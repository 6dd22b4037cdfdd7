import { type ErrorCode, ZerofleetError } from '../../contracts/index.js';
import type { WeightsFile } from '../../formats/models/weights.js';
import type { SafetensorsHeader } from '../../formats/safetensors/header.js';
import type { TorchFileRecord } from '../../formats/torch-file/record.js';

/** Findings about one file of a model upload, kept for the check of the whole model. */
export type ModelRecord =
  | { header: Pick<SafetensorsHeader, 'bytes' | 'tensors'>; file: string }
  | { checkpoint: CheckpointRecord; file: string }
  | { stored: Omit<WeightsFile, 'tensors'>; digests: readonly [name: string, digest: string][] };

/** A DeepSpeed checkpoint file, or the error of reading it; null if it need not be read. */
export type CheckpointRecord =
  | { content: TorchFileRecord }
  | { unread: { code: ErrorCode; message: string } }
  | null;

/** A tensor takes some hundred bytes per tensor and per four megabytes. */
const MAX_BYTES = 128 * 1024 * 1024;
const CHUNK_BYTES = 256 * 1024;
const NEWLINE = 0x0a;

export function encodeRecord(record: ModelRecord): Uint8Array {
  return Buffer.from(`${JSON.stringify(record)}\n`);
}

export function decodeRecords(chunks: readonly Uint8Array[]): ModelRecord[] {
  return chunks.flatMap((chunk) => {
    const lines = Buffer.from(chunk).toString('utf8').trimEnd().split('\n');
    return lines.map((line) => JSON.parse(line) as ModelRecord);
  });
}

/** Serialized records. The server's main thread never parses them, however many there are. */
export class Records {
  private readonly chunks: Uint8Array<ArrayBuffer>[] = [];
  private room: Uint8Array = new Uint8Array(0);
  private bytes = 0;

  /** @param record is retained if it is long @throws ZerofleetError `model_too_large` */
  add(record: Uint8Array): void {
    this.bytes += record.length;
    if (this.bytes > MAX_BYTES)
      throw new ZerofleetError('model_too_large', 'the weights of the model have too many tensors and files');
    if (record.length >= CHUNK_BYTES) {
      // Copying tens of megabytes would block the event loop.
      this.chunks.push(record as Uint8Array<ArrayBuffer>);
      return;
    }
    if (record.length > this.room.length) {
      this.room = new Uint8Array(CHUNK_BYTES).fill(NEWLINE);
      this.chunks.push(this.room as Uint8Array<ArrayBuffer>);
    }
    this.room.set(record);
    this.room = this.room.subarray(record.length);
  }

  /** Whole lines per chunk; the unused rest of a chunk is blank. */
  all(): Uint8Array<ArrayBuffer>[] {
    return this.chunks;
  }
}
