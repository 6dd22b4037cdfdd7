import { createHash } from 'node:crypto';
import { type Dataset, ZerofleetError } from '../../contracts/index.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import type { Inspector } from '../inspection/inspector.js';
import type { ContentCheck, ContentSummary } from './content-check.js';
import { JsonlCheck } from './jsonl-check.js';
import { TextCheck } from './text-check.js';
import { TokensCheck } from './tokens-check.js';

type Format = Dataset['format'];

/** What is known about a dataset once its content is stored. */
export type StoredContent = Pick<Dataset, 'bytes' | 'digest'> & ContentSummary;

/** How a format is checked, and what its content is stored as. */
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

/** Where content is stored, and what checks it. */
export interface StoreContentDeps {
  objects: ObjectStore;
  inspector: Inspector;
}

export interface ContentRules {
  format: Format;
  /** Whose content it is. */
  project: string;
  /** Largest size, in bytes. */
  limit: number;
  /** Refuses any other; null for whatever comes. */
  expected_digest?: string | null;
}

/**
 * Stores a dataset while it arrives, checking it on the way: the object appears only when the whole of it was good.
 *
 * @param body the content in pieces; it is read no faster than the store takes it
 * @throws ZerofleetError `dataset_empty`, `dataset_too_large`, `upload_digest_mismatch`, and those of the format's check; ObjectStoreError; what the
 *   body throws
 */
export async function storeContent(
  { objects, inspector }: StoreContentDeps,
  key: string,
  body: AsyncIterable<Uint8Array>,
  { format, project, limit, expected_digest = null }: ContentRules,
): Promise<StoredContent> {
  const { newCheck, contentType } = FORMATS[format];
  const content = new CheckedContent(newCheck(inspector, project), limit, expected_digest);
  const { bytes } = await objects.put(key, content.pieces(body), { contentType });
  return { bytes, ...content.result() };
}

/** Content on its way into the store. */
class CheckedContent {
  private readonly hash = createHash('sha256');
  private summary: ContentSummary | null = null;
  private digest = '';

  constructor(
    private readonly check: ContentCheck,
    private readonly limit: number,
    private readonly expected: string | null,
  ) {}

  /** Passes the pieces on. An error thrown here reaches the caller of `put` unchanged, and nothing is stored. */
  async *pieces(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let bytes = 0;
    for await (const piece of body) {
      bytes += piece.length;
      if (bytes > this.limit) throw tooLarge(this.limit);
      await this.check.push(piece);
      this.hash.update(piece);
      yield piece;
    }
    this.digest = `sha256:${this.hash.digest('hex')}`;
    if (this.expected !== null && this.expected !== this.digest)
      throw new ZerofleetError(
        'upload_digest_mismatch',
        `the content that came has ${this.digest}, and ${this.expected} was announced`,
      );
    this.summary = await this.check.end();
  }

  /** Once the pieces have been read to their end. */
  result(): ContentSummary & Pick<Dataset, 'digest'> {
    if (this.summary === null) throw new Error('the store has not read the content to its end');
    return { ...this.summary, digest: this.digest };
  }
}

export function tooLarge(limit: number): ZerofleetError {
  return new ZerofleetError('dataset_too_large', `a dataset may have at most ${limit} bytes`, {
    details: { limit },
  });
}
