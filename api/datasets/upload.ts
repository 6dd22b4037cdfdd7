import { createHash } from 'node:crypto';
import { ZerofleetError } from '../../contracts/index.js';
import type { ObjectStore } from '../../platform/object-store/port.js';
import { Utf8Validator } from './utf8.js';

/** What is known about a text once it is stored. */
export interface StoredText {
  bytes: number;
  /** `sha256:` and 64 hex digits. */
  digest: string;
}

/**
 * Stores a text while it arrives, checking it on the way: the object appears only when the whole of it was good.
 *
 * @param body the text in pieces; it is read no faster than the store takes it
 * @param limit largest size, in bytes
 * @throws ZerofleetError `dataset_empty`, `dataset_not_utf8`, `dataset_too_large`; ObjectStoreError; what the body throws
 */
export async function storeText(
  objects: ObjectStore,
  key: string,
  body: AsyncIterable<Uint8Array>,
  limit: number,
): Promise<StoredText> {
  const hash = createHash('sha256');
  const { bytes } = await objects.put(key, checkedPieces(body, limit, hash), {
    contentType: 'text/plain; charset=utf-8',
  });
  return { bytes, digest: `sha256:${hash.digest('hex')}` };
}

/** Passes the pieces on. An error thrown here reaches the caller of `put` unchanged, and nothing is stored. */
async function* checkedPieces(
  body: AsyncIterable<Uint8Array>,
  limit: number,
  hash: { update(piece: Uint8Array): unknown },
): AsyncGenerator<Uint8Array> {
  const validator = new Utf8Validator();
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    if (bytes > limit) throw tooLarge(limit);
    refuseInvalid(validator.push(piece));
    hash.update(piece);
    yield piece;
  }
  refuseInvalid(validator.end());
  if (bytes === 0)
    throw new ZerofleetError('dataset_empty', 'the body has no bytes; a dataset needs some text');
}

export function tooLarge(limit: number): ZerofleetError {
  return new ZerofleetError('dataset_too_large', `a dataset may have at most ${limit} bytes`, {
    details: { limit },
  });
}

function refuseInvalid(position: number | null): void {
  if (position === null) return;
  throw new ZerofleetError('dataset_not_utf8', `the text is not UTF-8 at byte ${position}`, {
    details: { position },
  });
}
