import { createHash } from 'node:crypto';
import { crc32c } from '@node-rs/crc32';
import { ZerofleetError } from '../../contracts/index.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { CHUNK_BYTES, crcOfChunk, hexCrc, type Manifest, type ManifestShard } from './manifest.js';

/**
 * Reads every shard of a checkpoint and compares it with the manifest: length, SHA-256, and the CRC32C of
 * each chunk, which locates the damage. Needs no job and little memory.
 * @param directory key of the checkpoint's directory, without a trailing slash
 * @throws ZerofleetError `shard_corrupt` naming the first damaged shard (and chunk); ObjectStoreError
 * `object_not_found` …
 */
export async function verifyShards(
  objects: ObjectStore,
  directory: string,
  manifest: Pick<Manifest, 'shards'>,
): Promise<void> {
  for (const shard of manifest.shards) {
    await verifyShard(await objects.stream(`${directory}/${shard.file}`), shard);
  }
}

async function verifyShard(content: AsyncIterable<Uint8Array>, shard: ManifestShard): Promise<void> {
  const sha256 = createHash('sha256');
  const chunks = new ChunkChecksums();
  let bytes = 0;
  for await (const piece of content) {
    sha256.update(piece);
    chunks.add(piece);
    bytes += piece.length;
  }
  if (bytes !== shard.bytes) throw corrupt(shard, `has ${bytes} bytes, not ${shard.bytes}`);
  const found = chunks.finish();
  const wrong = Array.from({ length: Math.ceil(bytes / CHUNK_BYTES) }, (_, chunk) => chunk).find(
    (chunk) => crcOfChunk(found, chunk) !== crcOfChunk(shard.crc32c, chunk),
  );
  if (wrong !== undefined)
    throw corrupt(shard, `chunk ${wrong} (of ${CHUNK_BYTES} bytes) does not match its checksum`);
  if (sha256.digest('hex') !== shard.sha256) throw corrupt(shard, 'does not match its SHA-256');
}

/** Computes the CRC32C of each CHUNK_BYTES of a stream of pieces of any size. */
export class ChunkChecksums {
  private done = '';
  private crc = 0;
  private held = 0;

  add(piece: Uint8Array): void {
    for (let at = 0; at < piece.length; ) {
      const end = Math.min(piece.length, at + CHUNK_BYTES - this.held);
      this.crc = crc32c(Buffer.from(piece.buffer, piece.byteOffset + at, end - at), this.crc);
      this.held += end - at;
      at = end;
      if (this.held === CHUNK_BYTES) this.closeChunk();
    }
  }

  /** Ends the last chunk and returns all checksums in order, eight hexadecimal digits each. */
  finish(): string {
    if (this.held > 0) this.closeChunk();
    return this.done;
  }

  private closeChunk(): void {
    this.done += hexCrc(this.crc);
    this.crc = 0;
    this.held = 0;
  }
}

function corrupt({ file }: ManifestShard, problem: string): ZerofleetError {
  return new ZerofleetError('shard_corrupt', `${file} ${problem}`);
}
