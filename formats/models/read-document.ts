/** Reader of a model's text files, shared by the API, which checks them, and the workers, which use them. */
import { type ErrorCode, ZerofleetError } from '../../contracts/index.js';

/**
 * Decodes a file as UTF-8. A byte order mark is refused: Hugging Face programs can't read JSON that begins
 * with one, and would treat it as a character of a template.
 * @throws ZerofleetError `code`
 */
export function documentText(name: string, bytes: Uint8Array, code: ErrorCode): string {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw unreadable(name, 'is not UTF-8', code);
  }
  if (text.startsWith('\uFEFF'))
    throw unreadable(name, 'begins with a byte order mark; save it as UTF-8 without one', code);
  return text;
}

/** Parses such a text as a JSON object. @throws ZerofleetError `code` */
export function jsonObject(name: string, text: string, code: ErrorCode): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw unreadable(name, `is not JSON: ${(error as Error).message.slice(0, 200)}`, code);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw unreadable(name, 'is not a JSON object', code);
  return value as Record<string, unknown>;
}

export function unreadable(name: string, problem: string, code: ErrorCode): ZerofleetError {
  return new ZerofleetError(code, `${name} ${problem}`, { details: { file: name } });
}
