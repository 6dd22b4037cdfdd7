import type { ResolvedJobSpec } from '../../contracts/index.js';
import type { FlawCount, TextFlaw } from '../../job-document/index.js';
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
  /** Documents with each flaw. */
  flaws: Partial<Record<TextFlaw, FlawCount>>;
}

/** Counts a stream of tokens. */
export class DataCounts {
  private readonly summary: DataSummary = {
    documents: 0,
    tokens: 0,
    targets: 0,
    max_token: -1,
    long_documents: 0,
    flaws: {},
  };
  /** Tokens of the current document, and its line. */
  private length = 0;
  private line: number | null = null;
  private numSources = 0;

  /** @param packing unless `split`, a document that does not fit into a sequence is cut */
  constructor(
    private readonly sequenceLength: number,
    private readonly packing: ResolvedJobSpec['data']['packing'],
  ) {}

  add({ tokens, counts, starts, line, flaws = [] }: TokenPiece): void {
    const { summary } = this;
    if (starts) {
      this.endDocument();
      summary.documents++;
      if (line === undefined || line !== this.line) this.numSources++;
      this.line = line ?? null;
      for (const flaw of flaws) this.count(flaw);
    }
    this.length += tokens.length;
    summary.tokens += tokens.length;
    summary.targets += countTargets(counts, 0, tokens.length, starts);
    for (const token of tokens) if (token > summary.max_token) summary.max_token = token;
  }

  get maxToken(): number {
    return this.summary.max_token;
  }

  /** Lines, or documents of data without lines. */
  get sources(): number {
    return this.numSources;
  }

  /** Ends the stream and returns the summary. */
  end(): DataSummary {
    this.endDocument();
    return { ...this.summary };
  }

  private count(flaw: TextFlaw): void {
    const { texts, first_line } = this.summary.flaws[flaw] ?? { texts: 0, first_line: this.line };
    this.summary.flaws[flaw] = { texts: texts + 1, first_line };
  }

  /** @param needed length of a sequence that the text fits into */
  private countCut(needed: number): void {
    const before = this.summary.flaws.cut?.needed_length ?? 0;
    this.count('cut');
    Object.assign(this.summary.flaws.cut ?? {}, { needed_length: Math.max(before, needed) });
  }

  private endDocument(): void {
    // A sequence has sequence_length inputs and the target of the last one.
    if (this.length > this.sequenceLength + 1) {
      this.summary.long_documents++;
      if (this.packing !== 'split') this.countCut(this.length - 1);
    }
    this.length = 0;
  }
}
