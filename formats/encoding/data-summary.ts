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
  /** Documents with each of the flaws of `TextFlaws`. */
  without_stop_token: number;
  with_two_begins: number;
}

/** Counts a stream of tokens. */
export class DataCounts {
  private readonly summary: DataSummary = {
    documents: 0,
    tokens: 0,
    targets: 0,
    max_token: -1,
    long_documents: 0,
    without_stop_token: 0,
    with_two_begins: 0,
  };
  /** Tokens of the current document. */
  private length = 0;

  constructor(private readonly sequence_length: number) {}

  add({ tokens, counts, starts, flaws }: TokenPiece): void {
    const { summary } = this;
    if (starts) {
      this.endDocument();
      summary.documents++;
      summary.without_stop_token += Number(flaws?.without_stop_token ?? false);
      summary.with_two_begins += Number(flaws?.with_two_begins ?? false);
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
