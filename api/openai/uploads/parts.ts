import { createHash } from 'node:crypto';
import type { ObjectStore } from '../../../platform/object-store/common/port.js';
import { newUlid } from '../../../platform/random.js';
import type { UploadSession } from '../../datasets/upload-session.js';
import { Refusal } from '../errors.js';

export const MAX_PART_BYTES = 64 * 1024 ** 2;
/**
 * The ids of all of them fit into the body of a completion, which is a JSON document like any other (`BODY_LIMITS`).
 */
export const MAX_PARTS = 4_000;
/** The client sends a part again when it lost the answer, so parts may exceed the file. */
const MAX_EXCESS = 2;
const LIFETIME_MS = 3_600_000;

type UploadStatus = 'pending' | 'completed' | 'cancelled' | 'expired';

/** When an upload expires, ms since 1970. */
export function expiryOf({ created_at }: { created_at: string }): number {
  return Date.parse(created_at) + LIFETIME_MS;
}

export async function statusOf(session: UploadSession): Promise<UploadStatus> {
  const end = await session.end();
  if (end !== null) return end === 'cancelled' ? end : 'completed';
  return Date.now() < expiryOf(session.announced) ? 'pending' : 'expired';
}

/** Refusal of a change of an upload that has ended. */
export function notPending({ announced }: UploadSession, status: UploadStatus): Refusal {
  const message = `the upload ${announced.id} is ${status}, not pending; create another one`;
  return new Refusal(400, 'upload_not_pending', 'upload_id', message);
}

/**
 * Parts of an upload that have any sizes and get their order at its completion. Each is an object below the upload's
 * parts.
 */
export class UploadParts {
  constructor(
    private readonly objects: ObjectStore,
    private readonly session: UploadSession,
  ) {}

  /** Stores a part while it arrives. @returns its id @throws Refusal; errors of the body. Nothing is stored then */
  async add(body: AsyncIterable<Uint8Array>): Promise<string> {
    await this.checkRoom();
    const id = `part_${newUlid()}`;
    const key = this.session.partsPrefix + id;
    await this.objects.put(key, atMost(body, this.session.announced.bytes));
    try {
      // Others may have arrived, and the upload may have ended, meanwhile.
      await this.checkRoom();
    } catch (error) {
      await this.objects.delete([key]);
      throw error;
    }
    return id;
  }

  /**
   * Opens the content of some parts, in this order.
   * @param md5 of the whole, hexadecimal; null for any
   * @throws Refusal: now, if they are not the announced bytes; while it is read, for another MD5
   */
  async content(ids: readonly string[], md5: string | null): Promise<AsyncIterable<Uint8Array>> {
    const sizes = await this.sizes();
    const { id: upload, bytes: announced } = this.session.announced;
    let bytes = 0;
    for (const id of ids) {
      const size = sizes.get(id);
      if (size === undefined)
        throw new Refusal(400, 'upload_part_not_found', 'part_ids', `the upload ${upload} has no part ${id}`);
      bytes += size;
    }
    if (bytes === announced) return this.pieces(ids, md5);
    const message = `the parts have ${bytes} bytes, but ${announced} were announced`;
    throw new Refusal(400, 'upload_bytes_mismatch', 'part_ids', message);
  }

  private async *pieces(ids: readonly string[], md5: string | null): AsyncGenerator<Uint8Array> {
    const hash = md5 === null ? null : createHash('md5');
    for (const id of ids) {
      for await (const piece of await this.objects.stream(this.session.partsPrefix + id)) {
        hash?.update(piece);
        yield piece;
      }
    }
    const found = hash?.digest('hex');
    if (found === undefined || found === md5?.toLowerCase()) return;
    const message = `the parts in this order have the MD5 ${found}, not ${md5}: check the order of part_ids`;
    throw new Refusal(400, 'upload_md5_mismatch', 'md5', message);
  }

  /** @throws Refusal if no further part may arrive, or too many have */
  private async checkRoom(): Promise<void> {
    const status = await statusOf(this.session);
    if (status !== 'pending') throw notPending(this.session, status);
    const sizes = await this.sizes();
    const { bytes: announced } = this.session.announced;
    const bytes = [...sizes.values()].reduce((sum, size) => sum + size, 0);
    if (bytes > MAX_EXCESS * announced)
      throw tooManyBytes(announced, `the parts, with those sent again, have ${bytes}`);
    if (sizes.size > MAX_PARTS)
      throw new Refusal(400, 'upload_too_many_parts', null, `an upload has at most ${MAX_PARTS} parts`);
  }

  /** Bytes of the parts, by id. */
  private async sizes(): Promise<Map<string, number>> {
    const { partsPrefix } = this.session;
    const sizes = new Map<string, number>();
    for await (const { key, bytes } of this.objects.list(partsPrefix))
      sizes.set(key.slice(partsPrefix.length), bytes);
    return sizes;
  }
}

async function* atMost(body: AsyncIterable<Uint8Array>, announced: number): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    if (bytes > MAX_PART_BYTES)
      throw new Refusal(413, 'upload_part_too_large', 'data', `a part has at most ${MAX_PART_BYTES} bytes`);
    if (bytes > announced) throw tooManyBytes(announced, 'this part has more');
    yield piece;
  }
}

function tooManyBytes(announced: number, excess: string): Refusal {
  return new Refusal(
    400,
    'upload_too_many_bytes',
    'data',
    `${announced} bytes were announced, and ${excess}`,
  );
}
