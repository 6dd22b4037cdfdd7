import { createHash } from 'node:crypto';
import { type Dataset, ZerofleetError } from '../../contracts/index.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import type { Inspector } from '../inspection/inspector.js';
import type { ContentCheck, ContentSummary } from './content-check.js';
import { JsonlCheck } from './jsonl-check.js';
import { TextCheck } from './text-check.js';
import { TokensCheck } from './tokens-check.js';

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
 * Stores a dataset while it arrives and checks it on the way: the object appears only if all of it is valid.
 *
 * @param body the content in pieces; it is read no faster than the store writes
 * @throws ZerofleetError `dataset_empty`, `dataset_too_large`, `upload_digest_mismatch`, and errors of the format's
 *   check; ObjectStoreError; errors of the body
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
        `the received content has ${this.digest}, but ${this.expected} was announced`,
      );
    this.summary = await this.check.end();
  }

  /** Summary, available after the pieces were read to the end. */
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
