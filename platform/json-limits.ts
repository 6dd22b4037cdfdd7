/**
 * What a JSON text may have, checked before a parser sees it: `JSON.parse` can't be interrupted, and takes memory and time for each value
 * (some 100 bytes for three of `[],`), so that its memory is bounded by nothing but this.
 */
export interface JsonLimits {
  /** Objects and arrays within each other. */
  depth: number;
  /** Of all kinds; the names of fields don't count. */
  values: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
/** A bit of case away from each other: `[` and `{`, `]` and `}`. */
const OPENING = 0x7b;
const CLOSING = 0x7d;
const CASE = 0x20;

/**
 * What of a text goes beyond the limits, fit to follow "it"; null when nothing does.
 * @param bytes of what may be JSON in UTF-8; whether it is one is for the parser to say
 */
export function jsonExcess(bytes: Uint8Array, { depth, values }: JsonLimits): string | null {
  let open = 0;
  let count = 1;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) {
      at = endOfString(bytes, at);
    } else if (byte === COMMA) {
      count++;
    } else if ((byte | CASE) === OPENING) {
      count++;
      if (++open > depth) return `is nested deeper than ${depth} levels`;
    } else if ((byte | CASE) === CLOSING) {
      open--;
    }
    if (count > values) return `has more than ${values} values`;
  }
  return null;
}

/** The place of the quote that ends the string that begins at `begin`; the end of the text when there is none. */
function endOfString(bytes: Uint8Array, begin: number): number {
  let at = begin + 1;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}
