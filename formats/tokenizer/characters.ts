/** Character classes of Rust and its crates `regex` and `unicode_categories`. */

export const WHITE_SPACE = /\p{White_Space}/u;
export const NUMERIC = /\p{N}/u;
export const PUNCTUATION = /[!-/:-@[-`{-~\p{P}]/u;

const WORD = '\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}';
export const STARTS_WITH_WORD = new RegExp(`^[${WORD}]`, 'u');
export const ENDS_WITH_WORD = new RegExp(`[${WORD}]$`, 'u');
/** Runs of word characters, and of characters that are neither word nor white space. */
export const WORDS = new RegExp(`[${WORD}]+|[^${WORD}\\p{White_Space}]+`, 'gu');

const LEADING_SPACE = /^\p{White_Space}+/u;
const TRAILING_SPACE = /\p{White_Space}+$/u;

export function trimStart(text: string): string {
  return text.replace(LEADING_SPACE, '');
}

export function trimEnd(text: string): string {
  // A regular expression that ends with `$` is tried at each white space of a text.
  let end = text.length;
  while (end > 0 && TRAILING_SPACE.test(text[end - 1] ?? '')) end--;
  return text.slice(0, end);
}

/** Returns the number of UTF-16 units of the character at a position. */
export function unitsAt(text: string, at: number): number {
  return (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
}

/**
 * Characters that represent bytes in byte-level vocabularies: printable Latin-1 unchanged, the others from
 * U+0100 on.
 */
const BYTE_CHARACTERS: readonly string[] = byteCharacters();
export const BYTE_OF_CHARACTER: ReadonlyMap<string, number> = new Map(
  BYTE_CHARACTERS.map((character, byte) => [character, byte]),
);

export function toByteLevel(text: string): string {
  let out = '';
  for (const byte of Buffer.from(text)) out += BYTE_CHARACTERS[byte];
  return out;
}

/** Returns the token of a byte in vocabularies with a byte fallback. */
export function byteToken(byte: number): string {
  return `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`;
}

function byteCharacters(): string[] {
  const printable = (byte: number) =>
    (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte < 0xad) || byte > 0xad;
  let others = 0;
  return Array.from({ length: 256 }, (_, byte) =>
    String.fromCodePoint(printable(byte) ? byte : 0x100 + others++),
  );
}
