import type { Span } from './chat-template.js';

/** Spelling of tokens in a vocabulary. */
export type Surface = 'byte-level' | 'spaces-marked';

/** Space marker of SentencePiece vocabularies. */
const SPACE = '\u2581';
const BYTE = /^<0x([0-9A-F]{2})>$/;

/** Text of a token. */
export interface Piece {
  /** UTF-8; may be a part of a character. */
  bytes: Uint8Array;
  special: boolean;
}

/**
 * Returns the text of a token. @param content its entry in the vocabulary; special tokens are spelled as in the text
 */
export function pieceOf(content: string, special: boolean, surface: Surface): Piece {
  return { bytes: special ? utf8(content) : spelled(content, surface), special };
}

/**
 * Returns which tokens overlap a span, by matching the tokens with the text.
 * @returns null when the tokens do not spell the text, because a normalizer changed it
 */
export function tokensOfSpans(
  text: string,
  pieces: readonly Piece[],
  spans: readonly Span[],
): Uint8Array | null {
  const bytes = new TextEncoder().encode(text);
  const borders = spans.map(({ begin, end }) => [byteLength(text, begin), byteLength(text, end)] as const);
  const counts = new Uint8Array(pieces.length);
  let place = 0;
  let span = 0;
  let index = 0;
  for (const piece of pieces) {
    const length = matched(bytes, place, piece);
    if (length === null) return null;
    const end = place + length;
    while (span < borders.length && (borders[span]?.[1] ?? 0) <= place) span++;
    const [from, to] = borders[span] ?? [0, 0];
    counts[index++] = Math.max(place, from) < Math.min(end, to) ? 1 : 0;
    place = end;
  }
  return place === bytes.length ? counts : null;
}

/** Returns the bytes of the text that a token matches; null without a match. */
function matched(bytes: Uint8Array, place: number, { bytes: token, special }: Piece): number | null {
  if (startsAt(bytes, place, token)) return token.length;
  // A space that the tokenizer added before a text matches nothing.
  const added = !special && token[0] === 0x20 && startsAt(bytes, place, token.subarray(1));
  return added ? token.length - 1 : null;
}

function startsAt(bytes: Uint8Array, place: number, token: Uint8Array): boolean {
  for (let index = 0; index < token.length; index++) if (bytes[place + index] !== token[index]) return false;
  return true;
}

function spelled(content: string, surface: Surface): Uint8Array {
  if (surface === 'byte-level') return Uint8Array.from(content, (char) => BYTE_OF.get(char) ?? 0);
  const byte = BYTE.exec(content)?.[1];
  return byte === undefined ? utf8(content.replaceAll(SPACE, ' ')) : Uint8Array.of(Number.parseInt(byte, 16));
}

function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function byteLength(text: string, end: number): number {
  return Buffer.byteLength(text.slice(0, end));
}

/** Characters that byte-level vocabularies use for bytes: printable Latin-1 unchanged, the others from U+0100 on. */
const BYTE_OF: ReadonlyMap<string, number> = byteCharacters();

function byteCharacters(): Map<string, number> {
  const printable = (byte: number) =>
    (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte < 0xad) || byte > 0xad;
  const map = new Map<string, number>();
  let others = 0;
  for (let byte = 0; byte < 256; byte++)
    map.set(String.fromCodePoint(printable(byte) ? byte : 0x100 + others++), byte);
  return map;
}
