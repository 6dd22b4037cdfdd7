import { isUtf8 } from 'node:buffer';
import { ZerofleetError } from '../../contracts/index.js';
import { type JsonLimits, jsonExcess } from '../../platform/json-limits.js';

/** Far more than any document has. Whatever walks through one may do so by calling itself, and in a moment. */
export const BODY_LIMITS: JsonLimits = { depth: 100, values: 5000 };

/** A half of a pair as `JSON.stringify` writes it. An even number of backslashes before it are characters of their own. */
const HALF_PAIR = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;
const MAYBE_HALF_PAIR = /\\u[dD][89a-fA-F]/;

/**
 * The text of a JSON body.
 * @throws ZerofleetError `malformed_json` when it is not UTF-8, or has more of anything than any document needs
 */
export function bodyText(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new ZerofleetError('malformed_json', 'the body is not UTF-8');
  const excess = jsonExcess(bytes, BODY_LIMITS);
  if (excess !== null) throw new ZerofleetError('malformed_json', `the body ${excess}`);
  return bytes.toString('utf8');
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
