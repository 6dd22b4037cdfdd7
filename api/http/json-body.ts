import { isUtf8 } from 'node:buffer';
import { ZerofleetError } from '../../contracts/index.js';
import { hasUnpairedSurrogate } from '../../contracts/jsonl/exact-json.js';
import { type JsonLimits, jsonExcess } from '../../platform/json-limits.js';

/** Far more than any document has. Within these limits recursive traversal is safe and fast. */
export const BODY_LIMITS: JsonLimits = { depth: 100, values: 5000 };

/**
 * Decodes the text of a JSON body. @throws ZerofleetError `malformed_json` when it is not UTF-8 or exceeds the limits
 */
export function bodyText(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new ZerofleetError('malformed_json', 'the body is not UTF-8');
  const excess = jsonExcess(bytes, BODY_LIMITS);
  if (excess !== null) throw new ZerofleetError('malformed_json', `the body ${excess}`);
  return bytes.toString('utf8');
}

/**
 * Refuses unpaired surrogates, which UTF-8 cannot represent.
 * @param value the parsed `text`
 * @throws ZerofleetError `malformed_json`
 */
export function refuseUnpairedSurrogates(text: string, value: unknown): void {
  if (hasUnpairedSurrogate(text, value))
    throw new ZerofleetError(
      'malformed_json',
      'the body has an unpaired surrogate, such as \\ud800 alone, which is not a character',
    );
}
