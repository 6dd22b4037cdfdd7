import type { Dataset } from '../../contracts/index.js';

/** What a dataset's content turned out to hold. */
export type ContentSummary = Pick<Dataset, 'num_documents' | 'num_chats' | 'num_tokens' | 'max_token'>;

/** Checks a dataset's content while it arrives. Both throw a ZerofleetError for content that is no dataset of the format. */
export interface ContentCheck {
  /** The next piece; it is read, or copied, before the call returns. */
  push(piece: Uint8Array): void | Promise<void>;
  end(): ContentSummary | Promise<ContentSummary>;
}
