import { countTargets, type TokenPiece, type Tokens } from '../../../formats/encoding/tokens.js';
import type { SequenceFile } from './sequence-files.js';
import type { TokenFileWriter } from './token-file-writer.js';

/** Documents of a window: limits of its tokens, of its documents, and its tokens as a multiple of a sequence's. */
const [WINDOW_TOKENS, WINDOW_DOCUMENTS, WINDOW_SEQUENCES] = [1 << 22, 1 << 16, 64];

type Document = Pick<TokenPiece, 'tokens' | 'counts'>;

/**
 * Writes documents to sequences by best fit decreasing, in windows of consecutive documents: the longest document
 * first, each to the fullest sequence that has room for it. A window has a fixed size, so memory does not grow with the
 * data, and the result depends only on the tokens.
 *
 * A document of more than T + 1 tokens is divided every T tokens. Its parts are documents here; each begins with the
 * last target of the part before. A document without a target is left out.
 */
export class FitFile implements SequenceFile {
  withoutTargets = 0;
  private readonly current: Part;
  private window: Document[] = [];
  private windowTokens = 0;
  private readonly limits: { tokens: number; documents: number };

  constructor(
    readonly writer: TokenFileWriter,
    private readonly length: number,
    limits?: { tokens: number; documents: number },
  ) {
    this.current = new Part(length + 1);
    this.limits = limits ?? {
      tokens: Math.max(WINDOW_TOKENS, WINDOW_SEQUENCES * length),
      documents: WINDOW_DOCUMENTS,
    };
  }

  append(tokens: Tokens, counts: Uint8Array | null, starts: boolean): void {
    if (starts) this.endDocument();
    for (let done = 0; done < tokens.length; ) {
      if (this.current.room === 0) this.push(this.current.takeFull());
      done += this.current.append(tokens, counts, done);
    }
  }

  copy(tokens: Tokens, counts: Uint8Array): void {
    this.writeSequence([{ tokens, counts }]);
  }

  end(): void {
    this.endDocument();
    this.writeWindow();
  }

  private endDocument(): void {
    if (this.current.count > 0) this.push(this.current.take());
  }

  private push(document: Document): void {
    const { tokens, counts } = document;
    if (countTargets(counts, 0, tokens.length, true) === 0) {
      if (tokens.length > 1) this.withoutTargets++;
      return;
    }
    this.window.push(document);
    this.windowTokens += tokens.length;
    if (this.windowTokens >= this.limits.tokens || this.window.length >= this.limits.documents)
      this.writeWindow();
  }

  private writeWindow(): void {
    const { window } = this;
    const lengths = window.map(({ tokens }) => tokens.length);
    for (const documents of bestFit(lengths, this.length + 1))
      this.writeSequence(documents.map((index) => window[index] as Document));
    this.window = [];
    this.windowTokens = 0;
  }

  private writeSequence(documents: Document[]): void {
    this.writer.sequence(this.writer.numTokens);
    for (const { tokens, counts } of documents) this.writer.append(tokens, counts, true);
  }
}

/** The tokens of a part of a document. */
class Part {
  count = 0;
  private readonly tokens: Uint32Array;
  private readonly counts: Uint8Array;

  constructor(readonly capacity: number) {
    this.tokens = new Uint32Array(capacity);
    this.counts = new Uint8Array(capacity);
  }

  get room(): number {
    return this.capacity - this.count;
  }

  /** Appends tokens from `first` on, as many as there is room for, and returns their number. */
  append(tokens: Tokens, counts: Uint8Array | null, first: number): number {
    const taken = Math.min(this.room, tokens.length - first);
    this.tokens.set(tokens.subarray(first, first + taken), this.count);
    if (counts === null) this.counts.fill(1, this.count, this.count + taken);
    else this.counts.set(counts.subarray(first, first + taken), this.count);
    this.count += taken;
    return taken;
  }

  take(): Document {
    const document = { tokens: this.tokens.slice(0, this.count), counts: this.counts.slice(0, this.count) };
    this.count = 0;
    return document;
  }

  /** Returns all tokens. The last one is the first of the next part. */
  takeFull(): Document {
    const document = this.take();
    this.append(document.tokens, document.counts, document.tokens.length - 1);
    return document;
  }
}

/**
 * Best fit decreasing: distributes items of `lengths`, each at most `capacity`, to bins. Returns the items of each bin.
 * Of equal items the first one comes first; of equally full bins the one that became as full last.
 */
export function bestFit(lengths: readonly number[], capacity: number): number[][] {
  const order = lengths.map((_, index) => index).sort((a, b) => at(lengths, b) - at(lengths, a) || a - b);
  const bins: number[][] = [];
  const rooms = new Rooms(capacity);
  for (const item of order) {
    const length = at(lengths, item);
    const found = rooms.take(length);
    const bin = found?.bin ?? bins.push([]) - 1;
    at(bins, bin).push(item);
    rooms.put(bin, (found?.room ?? capacity) - length);
  }
  return bins;
}

function at<Value>(values: readonly Value[], index: number): Value {
  return values[index] as Value;
}

/** Bins by their room. */
class Rooms {
  private readonly bins = new Map<number, number[]>();
  /** A bit for each room that a bin has, 32 in a word. */
  private readonly words: Uint32Array;

  constructor(capacity: number) {
    this.words = new Uint32Array((capacity >> 5) + 1);
  }

  put(bin: number, room: number): void {
    if (room === 0) return;
    const bins = this.bins.get(room);
    if (bins) bins.push(bin);
    else this.bins.set(room, [bin]);
    this.words[room >> 5] = this.wordAt(room >> 5) | (1 << (room & 31));
  }

  /** Removes a bin with the least room that is at least `length`; null: there is none. */
  take(length: number): { bin: number; room: number } | null {
    const room = this.leastFrom(length);
    if (room === null) return null;
    const bins = this.bins.get(room) as number[];
    const bin = bins.pop() as number;
    if (bins.length === 0) {
      this.bins.delete(room);
      this.words[room >> 5] = this.wordAt(room >> 5) & ~(1 << (room & 31));
    }
    return { bin, room };
  }

  private wordAt(index: number): number {
    return this.words[index] ?? 0;
  }

  private leastFrom(length: number): number | null {
    let mask = (-1 << (length & 31)) >>> 0;
    for (let word = length >> 5; word < this.words.length; word++) {
      const bits = (this.wordAt(word) & mask) >>> 0;
      if (bits !== 0) return (word << 5) + (31 - Math.clz32(bits & -bits));
      mask = 0xffffffff;
    }
    return null;
  }
}
