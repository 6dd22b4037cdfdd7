import { createHash } from 'node:crypto';
import { type Dataset, ZerofleetError } from '../../contracts/index.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import type { Inspector } from '../inspection/inspector.js';
import { type CheckedPieces, type ContentCheck, type ContentSummary, checked } from './content-check.js';
import { JsonlCheck } from './jsonl-check.js';
import { TextCheck } from './text-check.js';
import { TokensCheck } from './tokens-check.js';
import { unpacked } from './unpack/unpack.js';

type Format = Dataset['format'];

/** Properties of a dataset with stored content. */
type StoredContent = Pick<Dataset, 'bytes' | 'digest'> & ContentSummary;

/** Content check and stored media type of each format. */
const FORMATS: Readonly<
  Record<Format, { newCheck(inspector: Inspector, project: string): ContentCheck; contentType: string }>
> = {
  text: { newCheck: () => new TextCheck(), contentType: 'text/plain; charset=utf-8' },
  jsonl: {
    newCheck: (inspector, owner) => new JsonlCheck((lines) => inspector.run('checkLines', lines, { owner })),
    contentType: 'application/x-ndjson',
  },
  tokens: { newCheck: () => new TokensCheck(), contentType: 'application/octet-stream' },
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
 * Stores a dataset while it arrives, without its compression, and checks it on the way: the object appears only if all
 * of it is valid. Size and digest are those of the stored content.
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
  const { newCheck, contentType } = FORMATS[format];
  const received = new Measure(limit, expected_digest);
  const content = await unpacked(received.pieces(body));
  const kept = new Kept(checked(content.body, newCheck(inspector, project)));
  const stored = content.is_compressed ? new Measure(limit) : received;
  const pieces = content.is_compressed ? stored.pieces(kept.pieces()) : kept.pieces();
  const { bytes } = await objects.put(key, pieces, { contentType });
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
