import { countTargets } from './packing.js';
import type { TokenPiece } from './token-file-writer.js';

/** What was found in a dataset, the part that is set aside included. */
export interface DataSummary {
  documents: number;
  tokens: number;
  /** Tokens that the loss counts. */
  targets: number;
  /** The largest of the tokens. */
  max_token: number;
  /** Documents that have no room in one sequence; they are read in parts that do not see each other. */
  long_documents: number;
}

/** Counts while the tokens come. */
export class DataCounts {
  private readonly summary: DataSummary = {
    documents: 0,
    tokens: 0,
    targets: 0,
    max_token: -1,
    long_documents: 0,
  };
  /** Tokens of the last document. */
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

  /** There are no more tokens. */
  end(): DataSummary {
    this.endDocument();
    return { ...this.summary };
  }

  private endDocument(): void {
    // A sequence has as many inputs, and the target of the last one.
    if (this.length > this.sequence_length + 1) this.summary.long_documents++;
    this.length = 0;
  }
}
