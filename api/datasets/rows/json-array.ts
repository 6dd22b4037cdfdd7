import { ZerofleetError } from '../../../contracts/index.js';
import { badDocument } from '../../../contracts/jsonl/line.js';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const SPACE = 0x20;
const NEWLINE = 0x0a;
const ARRAY_END = 0x5d;
const OPENING: readonly number[] = [...Buffer.from('[{')];
const CLOSING: readonly number[] = [...Buffer.from(']}')];
const BLANKS: readonly number[] = [...Buffer.from(' \t\r\n')];

/**
 * Converts a JSON array to lines of JSONL, one for each item, byte by byte: items keep their text.
 * @throws (while it is read) ZerofleetError `dataset_line_invalid` for what no line can show; errors of the body
 */
export async function* linesOfArray(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const array = new ArrayScan();
  for await (const piece of body) yield array.convert(piece);
  array.end();
  yield Uint8Array.of(NEWLINE);
}

/** Names an item where `body` names a line. */
export async function* namingItems<T, R>(lines: AsyncGenerator<T, R>): AsyncGenerator<T, R> {
  try {
    return yield* lines;
  } catch (error) {
    if (!(error instanceof ZerofleetError) || typeof error.details.line !== 'number') throw error;
    const { line } = error.details;
    throw badDocument('item', line, error.message.replace(`line ${line}: `, ''));
  }
}

class ArrayScan {
  private depth = 0;
  private isString = false;
  private isEscaped = false;
  private items = 1;
  private isEmpty = true;
  private hasEnded = false;

  convert(piece: Uint8Array): Uint8Array {
    const line = Uint8Array.from(piece);
    for (let at = 0; at < line.length; at++) line[at] = this.next(line[at] as number);
    return line;
  }

  end(): void {
    if (!this.hasEnded) throw this.bad('the array does not end; the file may be truncated');
  }

  /** Returns what replaces a byte. */
  private next(byte: number): number {
    if (this.isString) return this.inString(byte);
    if (BLANKS.includes(byte)) return SPACE;
    if (this.hasEnded) throw this.bad('after it the array ends, and something follows');
    if (OPENING.includes(byte)) {
      this.isEmpty = this.depth === 0;
      return this.depth++ === 0 ? SPACE : byte;
    }
    if (CLOSING.includes(byte)) {
      this.depth -= 1;
      return this.depth === 0 ? this.endArray(byte) : byte;
    }
    if (byte === COMMA && this.depth === 1) return this.endItem();
    this.isEmpty = false;
    this.isString = byte === QUOTE;
    return byte;
  }

  private endItem(): number {
    if (this.isEmpty) throw this.bad('it is empty');
    this.items += 1;
    this.isEmpty = true;
    return NEWLINE;
  }

  private endArray(byte: number): number {
    if (byte !== ARRAY_END) throw this.bad('the array ends with }');
    if (this.isEmpty && this.items > 1) throw this.bad('it is empty');
    this.hasEnded = true;
    return SPACE;
  }

  private inString(byte: number): number {
    if (byte === NEWLINE) throw this.bad('a string has a line end; write it as \\n');
    if (this.isEscaped) this.isEscaped = false;
    else if (byte === BACKSLASH) this.isEscaped = true;
    else if (byte === QUOTE) this.isString = false;
    return byte;
  }

  private bad(what: string): Error {
    return badDocument('item', this.items, what);
  }
}
