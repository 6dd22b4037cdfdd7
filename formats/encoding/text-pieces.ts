/** Part of a text that is tokenized on its own. */
export interface TextPiece {
  bytes: Uint8Array;
  first: boolean;
  last: boolean;
  /** True if the part before it ends with a line end. */
  after_line: boolean;
}

/** Sizes in bytes: after `wanted` a piece ends at the next split point, at `limit` it ends anywhere. */
interface PieceSize {
  wanted: number;
  limit: number;
}

const SIZE: PieceSize = { wanted: 64 * 1024, limit: 1024 * 1024 };
const RETURN = 0x0d;
const NEWLINE = 0x0a;
/** Maximum length of a character in bytes. */
const MAX_CHARACTER = 4;

/**
 * Replaces CR LF by LF. A CR without a following LF stays.
 * @param text text in chunks of any size
 */
export async function* withLineFeeds(
  text: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  // The next chunk decides whether a CR at the end of a chunk is removed.
  let held = false;
  for await (const piece of text) {
    if (piece.length === 0) continue;
    const bytes: Uint8Array = held ? Buffer.concat([Uint8Array.of(RETURN), piece]) : piece;
    held = bytes.at(-1) === RETURN;
    yield withoutReturns(held ? bytes.subarray(0, -1) : bytes);
  }
  if (held) yield Uint8Array.of(RETURN);
}

function withoutReturns(bytes: Uint8Array): Uint8Array {
  if (!bytes.includes(RETURN)) return bytes;
  return bytes.filter((byte, at) => byte !== RETURN || bytes[at + 1] !== NEWLINE);
}

/**
 * Splits a UTF-8 text at positions across which tokenizers do not look: after a line end with non-whitespace on either
 * side. A text without such a position is split between any two characters at the limit. The positions depend only on
 * the text.
 */
export async function* textPieces(
  text: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  size: PieceSize = SIZE,
): AsyncGenerator<TextPiece> {
  let rest: Uint8Array = new Uint8Array(0);
  let first = true;
  let afterLine = false;
  const take = (end: number, last: boolean): TextPiece => {
    const piece = { bytes: rest.subarray(0, end), first, last, after_line: afterLine };
    rest = rest.subarray(end);
    first = false;
    afterLine = piece.bytes.at(-1) === NEWLINE;
    return piece;
  };
  for await (const chunk of text) {
    rest = Buffer.concat([rest, chunk]);
    for (let end = cutOf(rest, size, false); end !== null; end = cutOf(rest, size, false))
      yield take(end, false);
  }
  for (let end = cutOf(rest, size, true); end !== null; end = cutOf(rest, size, true)) yield take(end, false);
  yield take(rest.length, true);
}

/** Returns the end of the next piece; null when more text is needed, or for the last piece. */
function cutOf(text: Uint8Array, { wanted, limit }: PieceSize, ended: boolean): number | null {
  // The characters after a position must be available.
  const known = ended ? text.length : text.length - MAX_CHARACTER;
  for (
    let at = text.indexOf(NEWLINE, wanted - 1);
    at >= 0 && at < limit;
    at = text.indexOf(NEWLINE, at + 1)
  ) {
    if (at >= known) return null;
    if (isBetweenWords(text, at)) return at + 1;
  }
  if (known <= limit) return null;
  let end = limit;
  while (((text[end] ?? 0) & 0xc0) === 0x80) end--;
  return end;
}

function isBetweenWords(text: Uint8Array, newline: number): boolean {
  const decode = (begin: number, end: number) =>
    Buffer.from(text.subarray(Math.max(0, begin), end)).toString('utf8');
  const before = decode(newline - MAX_CHARACTER, newline);
  const after = decode(newline + 1, newline + 1 + MAX_CHARACTER);
  return /\S$/u.test(before) && /^\S/u.test(after);
}
