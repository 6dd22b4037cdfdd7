/** What a dataset's content turned out to hold; fields of the Dataset record. */
export interface ContentSummary {
  /** Null where it depends on a tokenizer or a chat template. */
  num_tokens: number | null;
  num_documents: number;
  /** Documents that are lists of messages. */
  num_chats: number;
}

/** Checks a dataset's content while it arrives. Both throw a ZerofleetError for content that is no dataset of the format. */
export interface ContentCheck {
  push(piece: Uint8Array): void;
  end(): ContentSummary;
}
