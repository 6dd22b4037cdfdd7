/**
 * Limits of a JSON text, checked before parsing: `JSON.parse` can't be interrupted, and its time and memory
 * (some 100 bytes for three of `[],`) are otherwise unbounded.
 */
export interface JsonLimits {
  /** Nesting of objects and arrays. */
  depth: number;
  /** Values of all kinds, without field names. */
  values: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
/** `[` and `{`, `]` and `}` differ in the ASCII case bit only. */
const OPENING = 0x7b;
const CLOSING = 0x7d;
const CASE = 0x20;

/**
 * Returns the limit that a text exceeds, in words that follow "it"; null if it exceeds none.
 * @param bytes UTF-8 text, not necessarily valid JSON
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

/**
 * Returns the position of the quote that ends the string at `begin`; the end of the text if there is none.
 */
function endOfString(bytes: Uint8Array, begin: number): number {
  let at = begin + 1;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}
