import { countTargets, type TokenPiece } from './tokens.js';

/** Summary of a dataset, including the validation split. */
export interface DataSummary {
  documents: number;
  tokens: number;
  /** Tokens that count in the loss. */
  targets: number;
  /** The largest token id. */
  max_token: number;
  /** Documents that do not fit into one sequence; they are read in parts without attention between them. */
  long_documents: number;
}

/** Counts a stream of tokens. */
export class DataCounts {
  private readonly summary: DataSummary = {
    documents: 0,
    tokens: 0,
    targets: 0,
    max_token: -1,
    long_documents: 0,
  };
  /** Tokens of the current document. */
  private length = 0;

  constructor(private readonly sequence_length: number) {}

  add({ tokens, counts, starts }: TokenPiece): void {
    const { summary } = this;
    if (starts) {
      this.endDocument();
      summary.documents++;
    }
    this.length += tokens.length;
    summary.tokens += tokens.length;
    summary.targets += countTargets(counts, 0, tokens.length, starts);
    for (const token of tokens) if (token > summary.max_token) summary.max_token = token;
  }

  get max_token(): number {
    return this.summary.max_token;
  }

  /** Ends the stream and returns the summary. */
  end(): DataSummary {
    this.endDocument();
    return { ...this.summary };
  }

  private endDocument(): void {
    // A sequence has sequence_length inputs and the target of the last one.
    if (this.length > this.sequence_length + 1) this.summary.long_documents++;
    this.length = 0;
  }
}
