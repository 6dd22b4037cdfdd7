import { ZerofleetError } from '../../contracts/index.js';

/** Far more than any document has; whatever walks through one may do so by calling itself. */
export const MAX_NESTING = 100;

/** A half of a pair as `JSON.stringify` writes it. An even number of backslashes before it are characters of their own. */
const HALF_PAIR = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;
const MAYBE_HALF_PAIR = /\\u[dD][89a-fA-F]/;

/**
 * Refuses JSON that is deeper than anything needs.
 * @throws ZerofleetError `malformed_json`
 */
export function refuseDeepJson(text: string): void {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') at = endOfString(text, at);
    else if (character === '[' || character === '{') depth++;
    else if (character === ']' || character === '}') depth--;
    if (depth > MAX_NESTING)
      throw new ZerofleetError('malformed_json', `the body is nested deeper than ${MAX_NESTING} levels`);
  }
}

/** Where a string that begins at `begin` ends; the end of the text when it does not. */
function endOfString(text: string, begin: number): number {
  let end = begin;
  do end = text.indexOf('"', end + 1);
  while (end >= 0 && isEscaped(text, end));
  return end < 0 ? text.length : end;
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0;
  while (text[at - 1 - backslashes] === '\\') backslashes++;
  return backslashes % 2 === 1;
}

/**
 * Refuses text that no UTF-8 can hold, and so no document that is made of it.
 * @param value what `text` was parsed to
 * @throws ZerofleetError `malformed_json`
 */
export function refuseHalfPairs(text: string, value: unknown): void {
  if (MAYBE_HALF_PAIR.test(text) && HALF_PAIR.test(JSON.stringify(value)))
    throw new ZerofleetError(
      'malformed_json',
      'the body has half a surrogate pair, such as \\ud800 alone, which is no character',
    );
}
