import { countTargets } from '../../../formats/encoding/tokens.js';

/**
 * Packer that splits the tokens of consecutive documents into sequences of T inputs and the target of the last one. It
 * receives the tokens in order and reports each sequence that it closes; a sequence without a target is dropped. The
 * result depends only on the tokens, not on the pieces in which they arrive.
 */
export interface Packer {
  /**
   * Adds the next `count` tokens. @param counts 1 for each token that counts as a target; null: all of them
   * @param starts true if the first of them begins a document
   */
  add(count: number, counts: Uint8Array | null, starts: boolean): void;
  /** Ends the stream of tokens. */
  end(): void;
  /** Sequences dropped so far because they have no target. */
  readonly withoutTargets: number;
}

/** Called with the position of a sequence's first token, in ascending order. */
export type OnSequence = (begin: number) => void;

/**
 * Packer that splits every T tokens, regardless of documents. Every token except the first is the target of one
 * sequence. `keepRest`: the tokens after the last full sequence form one more sequence, which is padded when it is
 * read.
 */
export class SplitPacker implements Packer {
  withoutTargets = 0;
  private position = 0;
  private begin = 0;
  private targets = 0;

  constructor(
    private readonly length: number,
    private readonly keepRest: boolean,
    private readonly onSequence: OnSequence,
  ) {}

  add(count: number, counts: Uint8Array | null, starts: boolean): void {
    for (let done = 0; done < count; ) {
      // The targets of the sequence from `begin` on are at begin + 1 to begin + length.
      const take = Math.min(count - done, this.begin + this.length + 1 - this.position);
      this.targets += countTargets(counts, done, done + take, starts);
      done += take;
      this.position += take;
      if (this.position === this.begin + this.length + 1) this.close();
    }
  }

  end(): void {
    if (this.keepRest) this.close();
  }

  private close(): void {
    if (this.targets > 0) this.onSequence(this.begin);
    else if (this.position > this.begin + 1) this.withoutTargets++;
    this.begin += this.length;
    this.targets = 0;
  }
}

/**
 * Packer that keeps documents whole: a sequence is as many documents, in order, as fit into it; the remainder is
 * padding. A document that is longer than a sequence is split every T tokens, and others may follow its remainder.
 */
export class WholePacker implements Packer {
  withoutTargets = 0;
  private position = 0;
  private begin = 0;
  /** Position of the last document. */
  private document = 0;
  /** Targets of the sequence: in the last document, and before it. */
  private targets = 0;
  private before = 0;

  constructor(
    private readonly length: number,
    private readonly onSequence: OnSequence,
  ) {}

  add(count: number, counts: Uint8Array | null, starts: boolean): void {
    if (starts) {
      this.document = this.position;
      this.before += this.targets;
      this.targets = 0;
    }
    for (let done = 0; done < count; ) {
      const take = Math.min(count - done, this.begin + this.length + 1 - this.position);
      this.targets += countTargets(counts, done, done + take, starts);
      done += take;
      this.position += take;
      if (done < count) this.makeRoom();
    }
  }

  end(): void {
    this.emit(this.before + this.targets);
  }

  /**
   * Closes the sequence because the next token does not fit: its document begins the next sequence, or is split if it
   * fills this one alone.
   */
  private makeRoom(): void {
    if (this.document > this.begin) {
      this.emit(this.before);
      this.begin = this.document;
    } else {
      this.emit(this.before + this.targets);
      this.begin += this.length;
      this.targets = 0;
    }
    this.before = 0;
  }

  private emit(targets: number): void {
    if (targets > 0) this.onSequence(this.begin);
    else if (this.position > this.begin + 1) this.withoutTargets++;
  }
}
