/**
 * How the tokens of documents, one after the other, are cut into sequences of T inputs and the target of the last one.
 * A packer is told of the tokens in their order and tells of each sequence that it closes; a sequence in which nothing
 * counts as a target is left out. What it cuts depends on the tokens alone, not on the pieces in which they come.
 */
export interface Packer {
  /**
   * The next `count` tokens. @param counts whether each counts as a target; null: all of them
   * @param starts whether the first of them begins a document
   */
  add(count: number, counts: Uint8Array | null, starts: boolean): void;
  /** There are no more. */
  end(): void;
  /** Sequences that were left out up to now. */
  readonly without_targets: number;
}

/** Called with the place of a sequence's first token, in ascending order. */
export type OnSequence = (begin: number) => void;

/**
 * Cuts every T tokens, wherever documents end. Every token but the first is the target of one sequence.
 * `keepRest`: the tokens behind the last whole sequence are one too; it is padded when it is read.
 */
export class SplitPacker implements Packer {
  without_targets = 0;
  private place = 0;
  private begin = 0;
  private targets = 0;

  constructor(
    private readonly length: number,
    private readonly keepRest: boolean,
    private readonly onSequence: OnSequence,
  ) {}

  add(count: number, counts: Uint8Array | null, starts: boolean): void {
    for (let done = 0; done < count; ) {
      // Of the sequence from `begin` on, the targets are the places begin + 1 to begin + length.
      const take = Math.min(count - done, this.begin + this.length + 1 - this.place);
      this.targets += countTargets(counts, done, done + take, starts);
      done += take;
      this.place += take;
      if (this.place === this.begin + this.length + 1) this.close();
    }
  }

  end(): void {
    if (this.keepRest) this.close();
  }

  private close(): void {
    if (this.targets > 0) this.onSequence(this.begin);
    else if (this.place > this.begin + 1) this.without_targets++;
    this.begin += this.length;
    this.targets = 0;
  }
}

/**
 * Keeps documents whole: a sequence is as many documents, in their order, as have room in it together; the rest of it is
 * padding. A document that is longer than a sequence is cut every T tokens, and others may follow its rest.
 */
export class WholePacker implements Packer {
  without_targets = 0;
  private place = 0;
  private begin = 0;
  /** Where the last document begins. */
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
      this.document = this.place;
      this.before += this.targets;
      this.targets = 0;
    }
    for (let done = 0; done < count; ) {
      const take = Math.min(count - done, this.begin + this.length + 1 - this.place);
      this.targets += countTargets(counts, done, done + take, starts);
      done += take;
      this.place += take;
      if (done < count) this.makeRoom();
    }
  }

  end(): void {
    this.tell(this.before + this.targets);
  }

  /** The next token has none: its document begins the next sequence, or is cut when it fills this one alone. */
  private makeRoom(): void {
    if (this.document > this.begin) {
      this.tell(this.before);
      this.begin = this.document;
    } else {
      this.tell(this.before + this.targets);
      this.begin += this.length;
      this.targets = 0;
    }
    this.before = 0;
  }

  private tell(targets: number): void {
    if (targets > 0) this.onSequence(this.begin);
    else if (this.place > this.begin + 1) this.without_targets++;
  }
}

/** Targets among tokens [begin, end) of a call; the first token of a document is none. */
export function countTargets(counts: Uint8Array | null, begin: number, end: number, starts: boolean): number {
  const first = starts && begin === 0 ? 1 : begin;
  if (counts === null) return Math.max(0, end - first);
  let targets = 0;
  for (let i = first; i < end; i++) targets += counts[i] === 0 ? 0 : 1;
  return targets;
}
