import type { Dataset } from '../../contracts/index.js';
import type { LineCounts } from '../contents/check-lines.js';

/** Summary of a dataset's content. */
export type ContentSummary = LineCounts & Pick<Dataset, 'num_tokens' | 'max_token'>;

/**
 * Checks a dataset's content while it arrives. Both methods throw a ZerofleetError for content that violates the
 * format.
 */
export interface ContentCheck {
  /** Checks the next piece; it is consumed or copied before the call returns. */
  push(piece: Uint8Array): void | Promise<void>;
  end(): ContentSummary | Promise<ContentSummary>;
}

/** Content on its way into the store: yields the pieces to store, and returns their summary. */
export type CheckedPieces = AsyncGenerator<Uint8Array, ContentSummary>;

/** Passes on pieces that `check` accepts. */
export async function* checked(body: AsyncIterable<Uint8Array>, check: ContentCheck): CheckedPieces {
  for await (const piece of body) {
    await check.push(piece);
    yield piece;
  }
  return check.end();
}
