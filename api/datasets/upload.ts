import { createHash } from 'node:crypto';
import { type Dataset, ZerofleetError } from '../../contracts/index.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import type { Inspector } from '../inspection/inspector.js';
import { type CheckedPieces, type ContentSummary, checked } from './content-check.js';
import type { RowsDeps } from './rows/deps.js';
import { type Rows, rowsOf } from './rows/rows.js';
import { TextCheck } from './text-check.js';
import { TokensCheck } from './tokens-check.js';
import { unpacked } from './unpack/unpack.js';

type Format = Dataset['format'];

/** Properties of a dataset with stored content. */
type StoredContent = Pick<Dataset, 'bytes' | 'digest'> & ContentSummary;

/** Reader and stored media type of each format. */
const FORMATS: Readonly<
  Record<
    Format,
    { read(body: AsyncIterable<Uint8Array>, deps: RowsDeps): Rows | Promise<Rows>; contentType: string }
  >
> = {
  text: {
    read: (body) => ({ pieces: checked(body, new TextCheck()), is_converted: false }),
    contentType: 'text/plain; charset=utf-8',
  },
  jsonl: { read: rowsOf, contentType: 'application/x-ndjson' },
  tokens: {
    read: (body) => ({ pieces: checked(body, new TokensCheck()), is_converted: false }),
    contentType: 'application/octet-stream',
  },
};

/** Dependencies of storeContent(). */
export interface StoreContentDeps {
  objects: ObjectStore;
  inspector: Inspector;
}

interface ContentRules {
  format: Format;
  /** Owner of the content. */
  project: string;
  /** Maximum size in bytes. */
  limit: number;
  /** Required digest; null accepts any content. */
  expected_digest?: string | null;
}

/**
 * Stores a dataset while it arrives, uncompressed and with rows as JSONL, and checks it on the way. The object appears
 * only if all of it is valid. Size and digest are those of the stored content.
 *
 * @param body the content in pieces; it is read no faster than the store writes
 * @throws ZerofleetError `dataset_empty`, `dataset_too_large`, `dataset_compression_invalid`,
 *   `upload_digest_mismatch`, and errors of the format's check; ObjectStoreError; errors of the body
 */
export async function storeContent(
  { objects, inspector }: StoreContentDeps,
  key: string,
  body: AsyncIterable<Uint8Array>,
  { format, project, limit, expected_digest = null }: ContentRules,
): Promise<StoredContent> {
  const { read, contentType } = FORMATS[format];
  const received = new Measure(limit, expected_digest);
  const { body: content, is_compressed } = await unpacked(received.pieces(body));
  const { pieces, is_converted } = await read(content, { objects, inspector, project });
  const kept = new Kept(pieces);
  const isAsReceived = !is_compressed && !is_converted;
  const stored = isAsReceived ? received : new Measure(limit);
  const storedPieces = isAsReceived ? kept.pieces() : stored.pieces(kept.pieces());
  const { bytes } = await objects.put(key, storedPieces, { contentType });
  return { bytes, digest: stored.digest(), ...kept.summary() };
}

/** Size and digest of pieces that pass. */
class Measure {
  private readonly hash = createHash('sha256');
  private found: string | null = null;

  constructor(
    private readonly limit: number,
    private readonly expected: string | null = null,
  ) {}

  /** Passes the pieces on. An error thrown here reaches the caller of `put` unchanged, and nothing is stored. */
  async *pieces(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let bytes = 0;
    for await (const piece of body) {
      bytes += piece.length;
      if (bytes > this.limit) throw tooLarge(this.limit);
      this.hash.update(piece);
      yield piece;
    }
    this.found = `sha256:${this.hash.digest('hex')}`;
    if (this.expected !== null && this.expected !== this.found)
      throw new ZerofleetError(
        'upload_digest_mismatch',
        `the received content has ${this.found}, but ${this.expected} was announced`,
      );
  }

  digest(): string {
    return atEnd(this.found);
  }
}

/** Keeps the summary of checked pieces. */
class Kept {
  private found: ContentSummary | null = null;

  constructor(private readonly content: CheckedPieces) {}

  async *pieces(): AsyncGenerator<Uint8Array> {
    this.found = yield* this.content;
  }

  summary(): ContentSummary {
    return atEnd(this.found);
  }
}

function atEnd<T>(value: T | null): T {
  if (value === null) throw new Error('the store has not read the content to its end');
  return value;
}

export function tooLarge(limit: number): ZerofleetError {
  return new ZerofleetError('dataset_too_large', `a dataset may have at most ${limit} bytes`, {
    details: { limit },
  });
}
